package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"porchlight/internal/commandline"
)

const (
	envPrefix = "PORCHLIGHT_CONTROL_"
	// maxConfig bounds a configuration file, in bytes.
	maxConfig = 1 << 20
	flagFile  = "config"
)

// complete fills in the flags that were not given: from the environment
// (--auth-host from PORCHLIGHT_CONTROL_AUTH_HOST), else from the YAML file of
// --config, whose keys are the names of the flags. known are the settings a file
// may hold beyond the command's own flags, because one file serves every command.
// Where a flag may be repeated, the variable holds several values with spaces
// between them, and the file a list.
func complete(flags *pflag.FlagSet, known []string, getenv func(string) (string, bool)) error {
	given := map[string]bool{}
	flags.Visit(func(f *pflag.Flag) { given[f.Name] = true })

	var problem error
	flags.VisitAll(func(f *pflag.Flag) {
		if given[f.Name] || problem != nil || !slices.Contains(known, f.Name) && f.Name != flagFile {
			return
		}
		name := envPrefix + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		value, ok := getenv(name)
		if !ok || value == "" {
			return
		}
		given[f.Name] = true
		values := []string{value}
		if f.Value.Type() == "stringArray" {
			values = strings.Fields(value)
		}
		for _, v := range values {
			if err := flags.Set(f.Name, v); err != nil {
				// The value may be a secret, so it is not repeated.
				problem = commandline.Usagef("the environment variable %s does not hold what --%s takes", name, f.Name)
			}
		}
	})
	if problem != nil {
		return problem
	}
	file, err := flags.GetString(flagFile)
	if err != nil || file == "" {
		return err
	}
	return completeFromFile(flags, file, known, given)
}

func completeFromFile(flags *pflag.FlagSet, file string, known []string, given map[string]bool) error {
	f, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("cannot read the configuration: %w", err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	if err != nil {
		return fmt.Errorf("cannot read the configuration: %w", err)
	}
	if len(raw) > maxConfig {
		return commandline.Usagef("%s is too large for a configuration", file)
	}
	settings, err := parseConfig(raw, known)
	if e, ok := errors.AsType[*configError](err); ok {
		return commandline.Usagef("%s:%d: %s", file, e.line, e.sentence)
	}
	if err != nil {
		return commandline.Usagef("%s is not YAML: %w", file, err)
	}
	for _, s := range settings {
		if given[s.name] || flags.Lookup(s.name) == nil {
			continue
		}
		for _, value := range s.values {
			if err := flags.Set(s.name, value); err != nil {
				return commandline.Usagef("%s:%d: %s does not take what is there", file, s.line, s.name)
			}
		}
	}
	return nil
}

// setting is one key of a configuration file.
type setting struct {
	name   string
	line   int
	values []string
}

// configError is what is wrong with one line.
type configError struct {
	line     int
	sentence string
}

func (e *configError) Error() string { return fmt.Sprintf("line %d: %s", e.line, e.sentence) }

// parseConfig reads a configuration file: one mapping of known names to scalars,
// or to lists of them.
func parseConfig(raw []byte, known []string) ([]setting, error) {
	var doc yaml.Node
	dec := yaml.NewDecoder(strings.NewReader(string(raw)))
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, nil // empty, or nothing but comments
	} else if err != nil {
		return nil, err
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, &configError{1, "the file holds more than one document"}
	}
	top := doc.Content[0]
	if top.Kind == yaml.ScalarNode && top.Tag == "!!null" {
		return nil, nil
	}
	if top.Kind != yaml.MappingNode {
		return nil, &configError{top.Line, "settings are written as \"name: value\""}
	}
	var settings []setting
	for i := 0; i < len(top.Content); i += 2 {
		key, value := top.Content[i], top.Content[i+1]
		s := setting{name: key.Value, line: key.Line}
		switch {
		case key.Kind != yaml.ScalarNode || !slices.Contains(known, key.Value):
			return nil, &configError{key.Line, fmt.Sprintf("there is no setting %q", key.Value)}
		case slices.ContainsFunc(settings, func(other setting) bool { return other.name == s.name }):
			return nil, &configError{key.Line, fmt.Sprintf("%s is set twice", s.name)}
		}
		values := []*yaml.Node{value}
		if value.Kind == yaml.SequenceNode {
			values = value.Content
		}
		for _, v := range values {
			if v.Kind != yaml.ScalarNode || v.Tag == "!!null" {
				return nil, &configError{v.Line, fmt.Sprintf("%s takes a plain value, or a list of them", s.name)}
			}
			s.values = append(s.values, v.Value)
		}
		settings = append(settings, s)
	}
	return settings, nil
}
