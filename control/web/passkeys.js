// Asks the browser for passkeys: to sign in with one, to make one, and whether it makes any for
// this address, which one that distrusts our certificate does not. Without this, people sign in by mail.
const bytes = (text) => Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
const text = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer))).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");

// begun are the options of a ceremony that the server has begun, as the browser wants them.
async function begun(address) {
  const answer = await fetch(address, { method: "POST" });
  if (!answer.ok) throw new Error("status " + answer.status);
  const { publicKey } = await answer.json();
  publicKey.challenge = bytes(publicKey.challenge);
  if (publicKey.user) publicKey.user.id = bytes(publicKey.user.id);
  for (const one of publicKey.excludeCredentials ?? []) one.id = bytes(one.id);
  return publicKey;
}

// send has a form carry what the browser answered.
function send(form, { id, type, rawId, response, authenticatorAttachment }) {
  const given = { clientDataJSON: text(response.clientDataJSON) };
  if (response.attestationObject) {
    given.attestationObject = text(response.attestationObject);
    given.transports = response.getTransports?.() ?? [];
  } else {
    given.authenticatorData = text(response.authenticatorData);
    given.signature = text(response.signature);
    if (response.userHandle) given.userHandle = text(response.userHandle);
  }
  form.elements.answer.value = JSON.stringify({ id, type, rawId: text(rawId), response: given, authenticatorAttachment: authenticatorAttachment ?? undefined, clientExtensionResults: {} });
  form.submit();
}

let waiting = new AbortController(); // of what the browser is asked for, which is one thing at a time

// ask asks for a passkey to sign in with: those the browser has, where mediation is
// "conditional", in the field for the address.
async function ask(address, mediation) {
  waiting.abort();
  const { signal } = (waiting = new AbortController());
  const publicKey = await begun(address);
  if (signal.aborted) throw signal.reason;
  if (mediation) setTimeout(() => renew(address, signal), publicKey.timeout * 0.8);
  return navigator.credentials.get({ publicKey, mediation, signal });
}

// renew asks anew before the challenge is over, once somebody looks.
function renew(address, signal) {
  if (signal.aborted) return;
  if (document.hidden) document.addEventListener("visibilitychange", () => renew(address, signal), { once: true });
  else offer(address);
}

const signIn = document.querySelector("form[data-sign-in]");
const make = document.querySelector("form[data-make]");
const mailed = document.querySelector("input[name=passkey][data-begin]");

// offer waits for a passkey to be picked. A browser that refuses at once has none for this address:
// the button goes, unless somebody may be about to press it and the browser could still mean yes.
async function offer(address) {
  try {
    const answer = await ask(address, "conditional");
    if (signIn) send(signIn, answer);
  } catch (err) {
    if (err.name === "AbortError" || (navigator.userActivation?.hasBeenActive && !/certificate/.test(err.message))) return;
    if (signIn) signIn.hidden = true;
    if (mailed) mailed.disabled = true;
  }
}

// distrusts waits for this browser to refuse passkeys because it distrusts our certificate, of
// which Chromium tells. Nothing is shown meanwhile, and no answer is taken.
async function distrusts() {
  try {
    await navigator.credentials.get({ publicKey: { challenge: new Uint8Array(32) }, mediation: "conditional", signal: waiting.signal });
  } catch (err) {
    return /certificate/.test(err.message);
  }
}

// pressed does what a form's button is for, and says on the page that it failed.
function pressed(form, answered) {
  form.hidden = false;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      send(form, await answered());
    } catch (err) {
      const problem = form.querySelector("[role=alert]");
      if (problem && err.name !== "AbortError") problem.hidden = false;
    }
  });
}

if (window.PublicKeyCredential) {
  const conditional = PublicKeyCredential.isConditionalMediationAvailable?.() ?? Promise.resolve(false);
  if (signIn) {
    pressed(signIn, async () => {
      try {
        return await ask(signIn.dataset.begin);
      } catch (err) {
        offer(signIn.dataset.begin);
        throw err;
      }
    });
    conditional.then((is) => is && offer(signIn.dataset.begin));
  }
  if (make) {
    pressed(make, async () => {
      waiting.abort();
      return navigator.credentials.create({ publicKey: await begun(make.dataset.begin) });
    });
    conditional.then(async (is) => {
      if (!is || !(await distrusts())) return;
      make.hidden = true;
      document.querySelector("[data-distrusts]").hidden = false;
    });
  }
  if (mailed) {
    Promise.all([PublicKeyCredential.isUserVerifyingPlatformAuthenticatorAvailable(), conditional]).then(([is, can]) => {
      mailed.disabled = !is;
      if (is && can) offer(mailed.dataset.begin);
    });
  }
}
