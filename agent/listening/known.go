package listening

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"porchlight/agent/agentapi"
)

// firstPort is the first that is no system service's.
const firstPort = 1024

// other says which other protocol a program at a port speaks, as far as its number or
// its name tells; empty for one that may well be a browser's. A database on another
// port and under another name is offered, and asked GET / at most: it refuses that.
func other(port int, program string) string {
	program = strings.TrimSuffix(strings.ToLower(program), ".exe")
	if why := byProgram[program]; why != "" {
		return why
	}
	if why := byPort[port]; why != "" {
		return why
	}
	if port >= 5900 && port <= 5999 || port >= 6000 && port <= 6063 {
		return agentapi.NotOfferedScreen // VNC, X11
	}
	if port < firstPort {
		return agentapi.NotOfferedSystem
	}
	return ""
}

var byPort = each(map[string][]int{
	agentapi.NotOfferedLogin:    {22, 23, 512, 513, 514, 2222, 3389},
	agentapi.NotOfferedMail:     {25, 110, 143, 465, 587, 993, 995, 1025, 2525, 4190},
	agentapi.NotOfferedNames:    {53, 853, 5353, 5355},
	agentapi.NotOfferedPrinting: {515, 631, 9100},
	agentapi.NotOfferedFiles:    {20, 21, 111, 139, 445, 548, 873, 2049},
	agentapi.NotOfferedDatabase: {
		1433, 1521, 3306, 33060, 5432, 5433, 6379, 6380, 7000, 7687, 9042, 9160, 11211, 26257, 27017, 27018, 27019, 28015, 50000,
	},
	agentapi.NotOfferedMessages: {1883, 4222, 5222, 5269, 5671, 5672, 6222, 8883, 9092, 61613, 61616},
	agentapi.NotOfferedControl: {
		2181, 2375, 2376, 2377, 2379, 2380, 5005, 5037, 6443, 8125, 9050, 9051, 9222, 9229, 10250,
	},
})

var byProgram = each(map[string][]string{
	agentapi.NotOfferedLogin:    strings.Fields("sshd sshd-session dropbear telnetd in.telnetd xrdp xrdp-sesman tinysshd"),
	agentapi.NotOfferedMail:     strings.Fields("exim4 exim sendmail dovecot imap-login pop3-login opensmtpd smtpd cyrmaster"),
	agentapi.NotOfferedNames:    strings.Fields("named dnsmasq unbound systemd-resolved systemd-resolve pdns_server avahi-daemon mdnsresponder stubby"),
	agentapi.NotOfferedPrinting: strings.Fields("cupsd cups-browsed lpd"),
	agentapi.NotOfferedScreen:   strings.Fields("xorg xvfb xwayland xvnc xtigervnc x0tigervnc x11vnc vncserver wayvnc gnome-remote-desktop-daemon krfb"),
	agentapi.NotOfferedFiles:    strings.Fields("smbd nmbd rpcbind rpc.statd rpc.mountd nfsd vsftpd proftpd pure-ftpd rsync afpd"),
	agentapi.NotOfferedDatabase: strings.Fields("postgres postmaster mysqld mariadbd redis-server valkey-server keydb-server mongod mongos memcached cockroach sqlservr"),
	agentapi.NotOfferedMessages: strings.Fields("mosquitto beam.smp nats-server rabbitmq-server ejabberd prosody"),
	agentapi.NotOfferedControl:  strings.Fields("adb dockerd containerd etcd kubelet tor gpg-agent ssh-agent chronyd ntpd systemd init pulseaudio pipewire-pulse"),
})

// each turns a table of kinds around: which kind each port or program is of.
func each[T comparable](kinds map[string][]T) map[T]string {
	all := map[T]string{}
	for why, ones := range kinds {
		for _, one := range ones {
			all[one] = why
		}
	}
	return all
}

// runs are programs that run or carry others: their names say nothing of what they
// serve.
var runs = func() map[string]bool {
	all := map[string]bool{}
	for _, name := range strings.Fields(`
		node nodejs deno bun npm npx yarn pnpm python pypy ruby perl php php-fpm java javaw dotnet mono lua go main
		server app web httpd apache apache2 nginx caddy lighttpd haproxy traefik envoy docker-proxy rootlessport
		slirp4netns pasta conmon uvicorn gunicorn puma unicorn rails flask streamlit hypercorn daphne waitress-serve
		socat nc ncat netcat busybox bash sh zsh fish ssh svchost system electron com.docker.backend vpnkit-bridge a.out`) {
		all[name] = true
	}
	return all
}()

// named is what a program is called, to people; empty where that says nothing of what
// it serves.
func named(program string) string {
	if container, ok := strings.CutPrefix(program, agentapi.ContainerShown); ok {
		program, _, _ = strings.Cut(container, " (")
	}
	base := strings.TrimRightFunc(strings.ToLower(program), func(r rune) bool { return unicode.IsDigit(r) || r == '.' || r == '-' })
	if base == "" || runs[base] || runs[strings.ToLower(program)] {
		return ""
	}
	first, size := utf8.DecodeRuneInString(program)
	return string(unicode.ToUpper(first)) + program[size:]
}
