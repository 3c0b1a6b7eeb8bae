package main

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// quietLoad is the load average up to which a machine counts as quiet.
const quietLoad = .3

// awaitQuiet waits for at most so long until the machine is quiet, which it is not
// just after a build, and returns its load averages.
func awaitQuiet(ctx context.Context, atMost time.Duration) (load string) {
	for end := time.Now().Add(atMost); ; {
		load = loadAverage()
		if isQuiet(load) || time.Now().After(end) || ctx.Err() != nil {
			return load
		}
		select {
		case <-ctx.Done():
		case <-time.After(2 * time.Second):
		}
	}
}

func loadAverage() string {
	line, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	fields := strings.Fields(string(line))
	return strings.Join(fields[:min(3, len(fields))], " ")
}

func isQuiet(load string) bool {
	first, _, _ := strings.Cut(load, " ")
	f, err := strconv.ParseFloat(first, 64)
	return err == nil && f <= quietLoad
}

// machine names where and with what was measured.
func machine(s settings) string {
	said := func(name string, args ...string) string {
		out, err := exec.Command(name, args...).CombinedOutput()
		if err != nil {
			return name + " (not known)"
		}
		line, _, _ := strings.Cut(string(out), "\n")
		return strings.TrimSpace(line)
	}
	return strings.Join([]string{
		fmt.Sprint(runtime.NumCPU(), " cores"), "kernel " + said("uname", "-r"), runtime.Version(),
		strings.TrimPrefix(said("nginx", "-v"), "nginx version: "),
		strings.Join(strings.Fields(said("haproxy", "-v"))[:3], " "),
		"Caddy " + moduleVersion(s.tool("caddy"), "caddyserver/caddy/v2"),
		"frp " + moduleVersion(s.tool("frps"), "fatedier/frp"),
		"chisel " + moduleVersion(s.tool("chisel"), "jpillora/chisel"),
		said("h2load", "--version"),
	}, ", ")
}

// moduleVersion is that of the module which a program was built from.
func moduleVersion(program, module string) string {
	path, err := exec.LookPath(program)
	if err != nil {
		return "(none)"
	}
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return "(not known)"
	}
	for _, m := range append(info.Deps, &info.Main) {
		if strings.HasSuffix(m.Path, module) {
			return m.Version
		}
	}
	return "(not known)"
}
