// SPDX-License-Identifier: Apache-2.0

package check

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/preflight"
	"github.com/regatta-sh/regatta/policies"
	"github.com/regatta-sh/regatta/test/apiserver"
	"github.com/regatta-sh/regatta/test/install"
)

// shop is a cluster, and a user who types the command.
type shop struct {
	client.Client
	env        *envtest.Environment
	kubeconfig string
}

func newShop(t *testing.T, edits ...func(*envtest.Environment)) *shop {
	t.Helper()
	env := apiserver.Start(t, edits...)
	s := &shop{env: env, kubeconfig: writeKubeconfig(t, env.KubeConfig)}
	known, err := preflight.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	if s.Client, err = client.New(env.Config, client.Options{Scheme: known}); err != nil {
		t.Fatal(err)
	}
	return s
}

func writeKubeconfig(t *testing.T, text []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// as is the same cluster for another user.
func (s *shop) as(t *testing.T, name string) *shop {
	t.Helper()
	user, err := s.env.AddUser(envtest.User{Name: name}, nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := user.KubeConfig()
	if err != nil {
		t.Fatal(err)
	}
	return &shop{s.Client, s.env, writeKubeconfig(t, text)}
}

// runs types the command with some text as its input, and returns its report, its output and how it ended.
func (s *shop) runs(t *testing.T, input string, args ...string) (Report, string, int) {
	t.Helper()
	root := &cobra.Command{Use: "regatta", SilenceUsage: true, SilenceErrors: true}
	root.AddCommand(NewCommand(policies.Builtin))
	var text bytes.Buffer
	root.SetOut(&text)
	root.SetIn(strings.NewReader(input))
	root.SetArgs(append([]string{"check", "--kubeconfig", s.kubeconfig}, args...))
	err := exit.WithExitCodes(root).ExecuteContext(t.Context())
	var r Report
	if strings.HasPrefix(text.String(), "{") {
		if err := json.Unmarshal(text.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
	}
	if err != nil {
		text.WriteString(err.Error())
	}
	return r, text.String(), exit.Code(err)
}

// create makes objects for as long as the test runs.
func (s *shop) create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := s.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Delete(context.Background(), o) })
	}
}

func (s *shop) helm(t *testing.T, command string, args ...string) {
	t.Helper()
	if out, err := install.Helm(t, "", command, append(args, "--kubeconfig", s.kubeconfig)...); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// wants checks that the report has findings that begin so, of status, check, object, field, message and fix.
func wants(t *testing.T, r Report, want ...string) {
	t.Helper()
	documented, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, f := range r.Findings {
		if !strings.Contains(string(documented), "`"+f.Check+"`") {
			t.Errorf("README.md does not have the check %s", f.Check)
		}
		have = append(have, strings.Join([]string{string(f.Status), f.Check, f.Object, f.Field, f.Message, f.Fix}, " | "))
	}
	for _, w := range want {
		found := false
		for _, h := range have {
			found = found || strings.HasPrefix(h, w)
		}
		if !found {
			t.Errorf("no finding %q in\n%s", w, strings.Join(have, "\n"))
		}
	}
}
