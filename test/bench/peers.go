package main

// The peers as somebody who knows them would set them up for this: a worker for
// each core, connections to the app kept alive, no access log, no temporary
// files.
const (
	nginxConfig = `daemon off;
worker_processes auto;
pid DIR/nginx.pid;
error_log stderr error;
events { worker_connections 4096; }
http {
	access_log off;
	client_body_temp_path DIR/body;
	proxy_temp_path DIR/proxy;
	fastcgi_temp_path DIR/fastcgi;
	uwsgi_temp_path DIR/uwsgi;
	scgi_temp_path DIR/scgi;
	keepalive_requests 100000000;
	upstream app { server APP; keepalive 64; keepalive_requests 100000000; }
	server {
		listen 127.0.0.1:PORT ssl http2 reuseport;
		server_name HOST;
		ssl_certificate DIR/cert.pem;
		ssl_certificate_key DIR/key.pem;
		ssl_protocols TLSv1.2 TLSv1.3;
		location / {
			proxy_pass http://app;
			proxy_http_version 1.1;
			proxy_set_header Connection "";
			proxy_set_header Host $host;
			proxy_max_temp_file_size 0;
		}
	}
}
`
	caddyConfig = `{
	admin off
	auto_https off
	servers {
		protocols h1 h2
	}
	log {
		level ERROR
	}
}
https://HOST:PORT {
	bind 127.0.0.1
	tls DIR/cert.pem DIR/key.pem
	reverse_proxy APP
}
`
	caddyAuthConfig = `{
	admin off
	auto_https off
	servers {
		protocols h1 h2
	}
	log {
		level ERROR
	}
}
https://HOST:PORT {
	bind 127.0.0.1
	tls DIR/cert.pem DIR/key.pem
	forward_auth AUTHORISER {
		uri /check
		copy_headers X-Service-User X-Service-Email
	}
	reverse_proxy APP
}
`
)
