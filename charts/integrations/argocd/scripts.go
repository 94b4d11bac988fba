// SPDX-License-Identifier: Apache-2.0

// Package argocd assembles the health checks and actions of Argo CD for the kinds of Regatta: Lua scripts in a folder for each
// kind, and functions of the folder prelude that they share. Argo CD runs each script alone, so an assembled script begins with
// the functions that it uses.
package argocd

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

const (
	preludeFolder = "prelude"
	// kindFile has functions that the scripts of one kind share.
	kindFile = "kind.lua"
)

// groups are the API groups, each a folder.
var groups = []string{"apps.kruise.io", "policy.kruise.io"}

// Kind has the assembled scripts of a kind.
type Kind struct {
	Group, Name string
	// Health is the health check.
	Health string
	// Discovery lists the actions; "" if there are none.
	Discovery string
	Actions   []Action
}

// Action is an assembled script that changes an object.
type Action struct{ Name, Script string }

// ReadKinds reads and assembles the scripts of all kinds, in the order of their groups and names. source is the folder of this
// package. It returns an error that names the file if a script or a function that is needed cannot be read.
func ReadKinds(source fs.FS) ([]Kind, error) {
	shared, err := readPrelude(source)
	if err != nil {
		return nil, err
	}
	var kinds []Kind
	for _, group := range groups {
		folders, err := fs.ReadDir(source, group)
		if err != nil {
			return nil, fmt.Errorf("listing the kinds of %s: %w", group, err)
		}
		for _, folder := range folders {
			kind, err := readKind(source, shared, group, folder.Name())
			if err != nil {
				return nil, err
			}
			kinds = append(kinds, kind)
		}
	}
	return kinds, nil
}

func readPrelude(source fs.FS) (declarations, error) {
	files, err := fs.Glob(source, path.Join(preludeFolder, "*.lua"))
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", preludeFolder, err)
	}
	shared := declarations{}
	for _, file := range files {
		if err := shared.addFile(source, file); err != nil {
			return nil, err
		}
	}
	return shared, nil
}

func readKind(source fs.FS, shared declarations, group, name string) (Kind, error) {
	folder, kind := path.Join(group, name), Kind{Group: group, Name: name}
	known := maps.Clone(shared)
	err := known.addFile(source, path.Join(folder, kindFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return kind, err
	}
	if kind.Health, err = known.readScript(source, path.Join(folder, "health.lua")); err != nil {
		return kind, err
	}
	actions, err := fs.ReadDir(source, path.Join(folder, "actions"))
	if errors.Is(err, fs.ErrNotExist) {
		return kind, nil
	}
	if err != nil {
		return kind, fmt.Errorf("listing the actions of %s: %w", name, err)
	}
	if kind.Discovery, err = known.readScript(source, path.Join(folder, "actions", "discovery.lua")); err != nil {
		return kind, err
	}
	for _, action := range actions {
		if !action.IsDir() {
			continue
		}
		script, err := known.readScript(source, path.Join(folder, "actions", action.Name(), "action.lua"))
		if err != nil {
			return kind, err
		}
		kind.Actions = append(kind.Actions, Action{action.Name(), script})
	}
	return kind, nil
}

// readScript reads a script, and puts the functions that it uses in front of it.
func (d declarations) readScript(source fs.FS, file string) (string, error) {
	text, err := readCode(source, file)
	if err != nil {
		return "", err
	}
	script := strings.Trim(strings.Join(text, "\n"), "\n") + "\n"
	used, err := d.listUsed(script)
	if err != nil {
		return "", fmt.Errorf("assembling %s: %w", file, err)
	}
	return strings.Join(append(used, script), ""), nil
}

// readCode reads the lines of a file, without lines that are comments.
func readCode(source fs.FS, file string) ([]string, error) {
	text, err := fs.ReadFile(source, file)
	if err != nil {
		return nil, fmt.Errorf("reading a script: %w", err)
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	return slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(strings.TrimSpace(line), "--") }), nil
}
