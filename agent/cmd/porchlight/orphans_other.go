//go:build unix && !linux

package main

import "syscall"

func dieWithUs(*syscall.SysProcAttr) {}

const adoptsOrphans = false

func adoptOrphans() {}

func buryOrphans(int, <-chan struct{}) {}
