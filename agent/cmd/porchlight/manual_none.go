//go:build !docs

package main

import "github.com/spf13/cobra"

func addManual(*cobra.Command) {}
