const secret = document.querySelector("input[name=secret]");
secret.value = location.hash.slice(1);
secret.form.querySelector("button").disabled = secret.value === "";
history.replaceState(null, "", location.pathname);
