// Command schemas makes of the descriptions of Kubernetes that are in its module what
// kubeconform reads: a JSON schema for each kind, in which a field that there is not is wrong.
//
//	go run ./test/containers/schemas FROM TO
//
// FROM is api/openapi-spec/v3 of the module k8s.io/kubernetes.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "schemas:", err)
		os.Exit(1)
	}
}

// document is a description of the kinds of one group and version.
type document struct {
	Components struct {
		Schemas map[string]map[string]any `json:"schemas"`
	} `json:"components"`
}

func run(args []string) error {
	if len(args) != 2 {
		return errors.New("usage: schemas FROM TO")
	}
	files, err := filepath.Glob(filepath.Join(args[0], "api*__v1_openapi.json"))
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("there are no descriptions in %s", args[0])
	}
	if err != nil {
		return err
	}
	if err := os.MkdirAll(args[1], 0o755); err != nil {
		return err
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var of document
		if err := json.Unmarshal(raw, &of); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if err := of.write(args[1]); err != nil {
			return err
		}
	}
	return nil
}

// write makes a file of each kind, which has all that it refers to beside it.
func (of document) write(to string) error {
	for _, schema := range of.Components.Schemas {
		if _, fields := schema["properties"]; fields {
			schema["additionalProperties"] = false
		}
	}
	for name, schema := range of.Components.Schemas {
		kinds, _ := schema["x-kubernetes-group-version-kind"].([]any)
		for _, kind := range kinds {
			one, _ := kind.(map[string]any)
			raw, err := json.Marshal(map[string]any{"$ref": "#/components/schemas/" + name, "components": of.Components})
			if err == nil {
				err = os.WriteFile(filepath.Join(to, fileOf(one)), raw, 0o644)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// fileOf is where kubeconform looks for a kind: statefulset-apps-v1.json, service-v1.json.
func fileOf(kind map[string]any) string {
	group, _, _ := strings.Cut(fmt.Sprint(kind["group"]), ".")
	parts := []string{strings.ToLower(fmt.Sprint(kind["kind"]))}
	if group != "" {
		parts = append(parts, group)
	}
	return strings.Join(append(parts, fmt.Sprint(kind["version"])), "-") + ".json"
}
