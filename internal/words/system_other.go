//go:build !darwin && !windows

package words

func locales() []string { return environment() }
