// SPDX-License-Identifier: Apache-2.0

package state

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/regatta-sh/regatta/test/cluster/addresses"
	"github.com/regatta-sh/regatta/test/cluster/process"
)

func TestCheckName(t *testing.T) {
	tests := map[string]bool{
		"regatta": true, "h1": true, "a": true, "my-demo-2": true, strings.Repeat("a", 30): true,
		"": false, "1a": false, "-a": false, "a-": false, "A": false, "a.b": false, "a/b": false, "..": false,
		strings.Repeat("a", 31): false,
	}
	for name, want := range tests {
		if err := CheckName(name); (err == nil) != want {
			t.Errorf("CheckName(%q) = %v", name, err)
		}
	}
}

func TestSavedStateIsLoaded(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	dir, err := Dir("h1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Load("h1"); !errors.Is(err, ErrNotFound) {
		t.Errorf("loading nothing says %v", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	saved := &State{
		Name: "h1", Dir: dir, Real: 2, Zones: 3, Plan: addresses.Plan{Octet: 90},
		Users: map[string]string{"admin": "x"}, Processes: []process.Spec{{Name: "etcd", Args: []string{"--a"}}},
	}
	saved.Ports.Set([]int{1, 2, 3, 4, 5, 6, 7})
	if err := saved.Save(); err != nil {
		t.Fatal(err)
	}
	loaded, err := Load("h1")
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(saved, loaded) {
		t.Errorf("saved %+v, loaded %+v", saved, loaded)
	}
	if all, err := List(); err != nil || len(all) != 1 {
		t.Errorf("listing gives %v, %v", all, err)
	}
	if err := Remove(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Dir(filepath.Dir(dir))); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the last cluster leaves an empty directory behind: %v", err)
	}
}

func TestHalfWrittenStateIsAnError(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	dir, err := Dir("h1")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, fileName), []byte(`{"name": "h1", `), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Load("h1"); err == nil || errors.Is(err, ErrNotFound) {
		t.Errorf("got %v", err)
	}
	if all, err := List(); err != nil || len(all) != 0 {
		t.Errorf("another cluster is kept from starting: %v, %v", all, err)
	}
}

func TestZonesTakeTurns(t *testing.T) {
	s := &State{Zones: 3}
	var zones []string
	for n := 1; n <= 4; n++ {
		zones = append(zones, s.Zone(n))
	}
	if got := strings.Join(zones, " "); got != "zone-a zone-b zone-c zone-a" {
		t.Errorf("got %s", got)
	}
}

func TestIdentifiersFitIntoInterfaceNames(t *testing.T) {
	id := Identifier("/root/.local/state/regatta/clusters/h1")
	if len("rg"+id+"-64") > 15 {
		t.Errorf("%q is too long", id)
	}
	if id == Identifier("/home/me/.local/state/regatta/clusters/h1") {
		t.Error("two users' clusters of one name have the same identifier")
	}
}
