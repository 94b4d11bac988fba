// SPDX-License-Identifier: Apache-2.0

package version

import (
	"bytes"
	"encoding/json"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/policies"
	"github.com/regatta-sh/regatta/test/rules"
)

func TestTheCommandNamesThePoliciesAsRecordsDo(t *testing.T) {
	e := rules.Engine(t, "")
	for _, tc := range []struct {
		name, flag, want string
		code             int
	}{
		{"text", "", "policies  " + bundle.ShortID(e.BuiltinBundle().ID()) + "\n", 0},
		{"JSON", "-ojson", `"policies": "` + e.BuiltinBundle().ID() + `"`, 0},
		{"another form", "-oxml", `--output is "xml": it is one of text, json`, exit.Usage},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cmd, out := NewCommand(policies.Builtin), &bytes.Buffer{}
			cmd.SetOut(out)
			cmd.SetErr(out)
			cmd.SetArgs(strings.Fields(tc.flag))
			if code := exit.Code(exit.WithExitCodes(cmd).Execute()); code != tc.code || !strings.Contains(out.String(), tc.want) {
				t.Errorf("it ended with %d and\n%s", code, out)
			}
			if tc.name == "JSON" && !json.Valid(out.Bytes()) {
				t.Error("it is no JSON")
			}
		})
	}
}

func TestWhatABuildSaysOfItself(t *testing.T) {
	b := &bundle.Bundle{Name: "builtin", Revision: "1"}
	opa := &debug.Module{Path: "github.com/open-policy-agent/opa", Version: "v1.22.0"}
	for _, tc := range []struct {
		name         string
		info         *debug.BuildInfo
		regatta, opa string
	}{
		{"nothing", nil, "(devel)", ""},
		{"a release", &debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}, Deps: []*debug.Module{{Path: "x"}, opa}}, "v1.2.3", "v1.22.0"},
		{"no version", &debug.BuildInfo{}, "(devel)", ""},
	} {
		if got := newVersion(b, tc.info); got.Regatta != tc.regatta || got.OPA != tc.opa || got.Policies != "builtin@1" {
			t.Errorf("%s: %+v", tc.name, got)
		}
	}
}

// The linker sets the version where Go is not to ask Git for one.
func TestAReleaseNamesItsVersion(t *testing.T) {
	released = "v0.2.0"
	t.Cleanup(func() { released = "" })
	for _, info := range []*debug.BuildInfo{nil, {Main: debug.Module{Version: "(devel)"}}} {
		if got := newVersion(&bundle.Bundle{Name: "builtin"}, info); got.Regatta != "v0.2.0" {
			t.Errorf("got %s", got.Regatta)
		}
	}
}
