// SPDX-License-Identifier: Apache-2.0

package images

import (
	"archive/tar"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// standIn makes a StandIn from a script that plays BusyBox, which the machine
// may not have.
func standIn(t *testing.T) *StandIn {
	t.Helper()
	made, err := NewStandIn(script(t, "busybox", "printf 'sh\\nsleep\\nhttpd\\n'\n"))
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// script writes one, and returns its path.
func script(t *testing.T, name, lines string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(to, []byte("#!/bin/sh\n"+lines), 0o755); err != nil {
		t.Fatal(err)
	}
	return to
}

func TestTagsAndImageIDs(t *testing.T) {
	tests := []struct {
		name       string
		one, other [2]string
		same       bool
	}{
		{"a tag always has the same image", [2]string{"nginx", "1.7.9"}, [2]string{"nginx", "1.7.9"}, true},
		{"another tag has another image", [2]string{"nginx", "1.7.9"}, [2]string{"nginx", "1.8"}, false},
		{"another repository has another image", [2]string{"nginx", "v1"}, [2]string{"redis", "v1"}, false},
		{"the tags same-digest-* are one image", [2]string{"nginx", "same-digest-a"}, [2]string{"nginx", "same-digest-b"}, true},
		{"but not across repositories", [2]string{"nginx", "same-digest-a"}, [2]string{"redis", "same-digest-a"}, false},
	}
	made := standIn(t)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			oneDigest, oneID := identity(t, made, test.one)
			otherDigest, otherID := identity(t, made, test.other)
			if (oneDigest == otherDigest) != test.same || (oneID == otherID) != test.same {
				t.Errorf("%v is %s (%s), %v is %s (%s)", test.one, oneDigest, oneID, test.other, otherDigest, otherID)
			}
		})
	}
}

func identity(t *testing.T, made *StandIn, name [2]string) (digest, id v1.Hash) {
	t.Helper()
	image, err := made.ImageID(name[0], name[1])
	if err != nil {
		t.Fatal(err)
	}
	if digest, err = image.Digest(); err != nil {
		t.Fatal(err)
	}
	if id, err = image.ConfigName(); err != nil {
		t.Fatal(err)
	}
	return digest, id
}

func TestPauseDoesNotListen(t *testing.T) {
	made := standIn(t)
	for repository, want := range map[string]string{"pause": "/bin/pause", "a/pause": "/bin/pause", "nginx": "/bin/serve"} {
		image, err := made.ImageID(repository, "v1")
		if err != nil {
			t.Fatal(err)
		}
		config, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(config.Config.Cmd, " "); got != want {
			t.Errorf("%s runs %s", repository, got)
		}
	}
}

func TestStandInHasTheAppletsAndDirectories(t *testing.T) {
	image, err := standIn(t).ImageID("nginx", "v1")
	if err != nil {
		t.Fatal(err)
	}
	entries := layerEntries(t, image)
	for name, kind := range map[string]byte{
		"bin/": tar.TypeDir, "bin/busybox": tar.TypeReg, "bin/sh": tar.TypeSymlink, "bin/httpd": tar.TypeSymlink,
		"usr/": tar.TypeDir, "usr/bin/env": tar.TypeSymlink, "tmp/": tar.TypeDir, "www/index.html": tar.TypeReg,
	} {
		if got, ok := entries[name]; !ok || got.Typeflag != kind {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if entries["tmp/"].Mode != 0o1777 {
		t.Errorf("/tmp has the mode %o", entries["tmp/"].Mode)
	}
}

func layerEntries(t *testing.T, image v1.Image) map[string]*tar.Header {
	t.Helper()
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("the image has the layers %v, %v", layers, err)
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	entries := map[string]*tar.Header{}
	for reader := tar.NewReader(content); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return entries
		}
		if err != nil {
			t.Fatal(err)
		}
		entries[header.Name] = header
	}
}

func TestFromPrograms(t *testing.T) {
	program := build(t)
	image, err := FromPrograms([]string{program}, Options{User: "65532"})
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Config.Entrypoint[0] != "/program" || config.Config.User != "65532" {
		t.Errorf("it runs %v as %s", config.Config.Entrypoint, config.Config.User)
	}
	if entry := layerEntries(t, image)["program"]; entry == nil || entry.Mode != 0o755 {
		t.Errorf("the program is packed as %+v", entry)
	}
	again, err := FromPrograms([]string{program}, Options{User: "65532"})
	if err != nil {
		t.Fatal(err)
	}
	first, _ := image.Digest()
	second, _ := again.Digest()
	if first != second {
		t.Errorf("the same program makes the images %s and %s", first, second)
	}
}

func TestScriptsRunInAnImageWithBusyBox(t *testing.T) {
	busybox := script(t, "busybox", "printf 'sh\\nsleep\\n'\n")
	image, err := FromPrograms([]string{build(t), script(t, "migrate.sh", "")}, Options{BusyBox: busybox})
	if err != nil {
		t.Fatal(err)
	}
	entries := layerEntries(t, image)
	if entries["bin/sh"] == nil || entries["bin/sh"].Linkname != "/bin/busybox" || entries["migrate.sh"] == nil || entries["program"] == nil {
		t.Errorf("the image has %v", slices.Sorted(maps.Keys(entries)))
	}
	if _, err := FromPrograms([]string{"/bin/ls"}, Options{BusyBox: busybox}); err == nil || !strings.Contains(err.Error(), "linked dynamically") {
		t.Errorf("a program that is linked dynamically: %v", err)
	}
}

func TestFromProgramsRefusesWhatCannotRun(t *testing.T) {
	tests := map[string][]string{
		"at least one program": nil,
		"not a Linux program":  {script(t, "script", "")},
		"no such file":         {"/nonexistent"},
		"linked dynamically":   {"/bin/ls"},
	}
	for want, programs := range tests {
		if _, err := FromPrograms(programs, Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v, want %q", programs, err, want)
		}
	}
}

func build(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	source, program := filepath.Join(dir, "main.go"), filepath.Join(dir, "program")
	if err := os.WriteFile(source, []byte("package main\nfunc main() {}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	command := exec.Command("go", "build", "-o", program, source)
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return program
}
