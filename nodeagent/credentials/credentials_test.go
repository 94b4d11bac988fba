// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const head = "apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\n"

func TestConfigurationsThatAreRefused(t *testing.T) {
	one := func(fields string) string { return head + "providers:\n- {" + fields + "}\n" }
	const good = `name: a, apiVersion: credentialprovider.kubelet.k8s.io/v1, defaultCacheDuration: 1h, matchImages: ["*.example.com"]`
	for name, tc := range map[string]struct{ text, want string }{
		"no configuration":    {"kind: Pod\napiVersion: v1\n", `kind is "Pod", want CredentialProviderConfig`},
		"another version":     {"kind: CredentialProviderConfig\napiVersion: kubelet.config.k8s.io/v7\n", `apiVersion is "kubelet.config.k8s.io/v7"`},
		"no provider":         {head, "providers is empty"},
		"an unknown field":    {one(good + ", colour: red"), `unknown field "providers[0].colour"`},
		"a path for a name":   {one(strings.Replace(good, "name: a", "name: ../a", 1)), `providers[0].name is "../a"`},
		"no version":          {one(strings.Replace(good, "credentialprovider.kubelet.k8s.io/v1", "v1", 1)), `providers[0].apiVersion is "v1"`},
		"no duration":         {one(strings.Replace(good, "defaultCacheDuration: 1h, ", "", 1)), "providers[0].defaultCacheDuration is missing"},
		"nothing to match":    {one(strings.Replace(good, `"*.example.com"`, "", 1)), "providers[0].matchImages is empty"},
		"a bad pattern":       {one(strings.Replace(good, "*.example.com", "[.example.com", 1)), "providers[0].matchImages[0]"},
		"a * in the path":     {one(strings.Replace(good, "*.example.com", "example.com/*", 1)), "a * may be in the host alone"},
		"tokens of pods":      {one(good + ", tokenAttributes: {serviceAccountTokenAudience: x, requireServiceAccount: true}"), "providers[0].tokenAttributes is not supported"},
		"two of one name":     {head + "providers:\n- {" + good + "}\n- {" + good + "}\n", `providers[1].name is "a", which another provider has`},
		"two faults at once":  {one(`name: "", apiVersion: credentialprovider.kubelet.k8s.io/v1, defaultCacheDuration: 1h`), "matchImages is empty"},
		"text that is no map": {"hello", "cannot unmarshal"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "config.yaml")
			if err := os.WriteFile(file, []byte(tc.text), 0o600); err != nil {
				t.Fatal(err)
			}
			p, err := LoadProviders(file, "/plugins")
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), file) {
				t.Fatalf("got %v, want %q", err, tc.want)
			}
			if logins, again := p.ImageLogins(t.Context(), "nginx"); again == nil || len(logins) > 0 {
				t.Errorf("a pull does not report it: %v, %v", logins, again)
			}
		})
	}
}

func TestWithoutAFileThereAreNoPlugins(t *testing.T) {
	for _, file := range []string{"", filepath.Join(t.TempDir(), "none")} {
		p, err := LoadProviders(file, "/plugins")
		if err != nil {
			t.Fatal(err)
		}
		if logins, err := p.ImageLogins(t.Context(), "nginx"); err != nil || len(logins) > 0 {
			t.Errorf("got %v, %v", logins, err)
		}
	}
}

// world is a directory with plugins, which are scripts that count how often they run.
type world struct {
	*testing.T
	directory string
	p         *Providers
	now       time.Time
}

// plugin writes a script that keeps the request and prints an answer.
func (w *world) plugin(name, answer string) {
	w.Helper()
	script := fmt.Sprintf("#!/bin/sh\ncat >%[1]s/%[2]s.request\necho x >>%[1]s/%[2]s.runs\n%[3]s\n", w.directory, name, answer)
	if err := os.WriteFile(filepath.Join(w.directory, name), []byte(script), 0o700); err != nil { //nolint:gosec // it is to be run
		w.Fatal(err)
	}
}

func (w *world) runs(name string) int {
	w.Helper()
	raw, err := os.ReadFile(filepath.Join(w.directory, name+".runs"))
	if err != nil && !os.IsNotExist(err) {
		w.Fatal(err)
	}
	return strings.Count(string(raw), "x")
}

func begin(t *testing.T, providers string) *world {
	t.Helper()
	w := &world{T: t, directory: t.TempDir(), now: time.Unix(1_700_000_000, 0)}
	file := filepath.Join(w.directory, "config.yaml")
	if err := os.WriteFile(file, []byte(head+"providers:\n"+providers), 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if w.p, err = LoadProviders(file, w.directory); err != nil {
		t.Fatal(err)
	}
	w.p.now = func() time.Time { return w.now }
	return w
}

// logins are "user:password" of each, or the error.
func (w *world) logins(image string) string {
	w.Helper()
	logins, err := w.p.ImageLogins(w.Context(), image)
	var out []string
	for _, l := range logins {
		out = append(out, l.Username+":"+l.Password)
	}
	if err != nil {
		out = append(out, err.Error())
	}
	return strings.Join(out, " ")
}

func entry(name, match string) string {
	return fmt.Sprintf("- {name: %s, apiVersion: credentialprovider.kubelet.k8s.io/v1, defaultCacheDuration: 1h, matchImages: [%q], args: [get], env: [{name: TEAM, value: shop}]}\n", name, match)
}

func prints(key, duration, auth string) string {
	return fmt.Sprintf(`echo '{"apiVersion": "credentialprovider.kubelet.k8s.io/v1", "kind": "CredentialProviderResponse", "cacheKeyType": %q, %s "auth": %s}'`, key, duration, auth)
}

func TestLogins(t *testing.T) {
	w := begin(t, entry("cloud", "*.example.com")+entry("other", "other.org"))
	w.plugin("cloud", `if [ "$1$TEAM" != getshop ]; then exit 3; fi; `+prints("Registry", "", `{"registry.example.com": {"username": "ann", "password": "1"}, "registry.example.com/team": {"username": "ben", "password": "2"}, "else.example.com": {"username": "x", "password": "y"}}`))
	if got := w.logins("registry.example.com/team/app"); got != "ben:2 ann:1" {
		t.Errorf("got %q", got)
	}
	raw, err := os.ReadFile(filepath.Join(w.directory, "cloud.request"))
	if want := `{"kind":"CredentialProviderRequest","apiVersion":"credentialprovider.kubelet.k8s.io/v1","image":"registry.example.com/team/app"}`; err != nil || string(raw) != want {
		t.Errorf("asked %s, %v", raw, err)
	}
	if got := w.logins("nginx"); got != "" || w.runs("cloud") != 1 || w.runs("other") != 0 {
		t.Errorf("an image of no plugin has %q", got)
	}
}

func TestAnswersAreKept(t *testing.T) {
	const auth = `{"registry.example.com": {"username": "ann", "password": "1"}}`
	for name, tc := range map[string]struct {
		key, duration string
		runs          [3]int // after another image, after 59 minutes, after two more
	}{
		"for an image":            {"Image", "", [3]int{2, 2, 3}},
		"for a registry":          {"Registry", "", [3]int{1, 1, 2}},
		"for all":                 {"Global", "", [3]int{1, 1, 2}},
		"not at all":              {"Global", `"cacheDuration": "0s",`, [3]int{2, 3, 4}},
		"for longer than an hour": {"Global", `"cacheDuration": "10h",`, [3]int{1, 1, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			w := begin(t, entry("cloud", "*.example.com"))
			w.plugin("cloud", prints(tc.key, tc.duration, auth))
			if got := w.logins("registry.example.com/a"); got != "ann:1" {
				t.Fatalf("got %q", got)
			}
			w.logins("registry.example.com/b")
			var runs [3]int
			runs[0] = w.runs("cloud")
			for i, later := range []time.Duration{59 * time.Minute, 2 * time.Minute} {
				w.now = w.now.Add(later)
				w.logins("registry.example.com/a")
				runs[i+1] = w.runs("cloud")
			}
			if runs != tc.runs {
				t.Errorf("it ran %v times, want %v", runs, tc.runs)
			}
		})
	}
}

func TestPluginsThatFail(t *testing.T) {
	for name, tc := range map[string]struct{ answer, want string }{
		"with a message":         {"echo 'no token' >&2; exit 1", "asking credential provider bad about registry.example.com/a: exit status 1: no token"},
		"without an answer":      {"true", "its answer is no CredentialProviderResponse"},
		"of another version":     {`echo '{"apiVersion": "v1", "kind": "CredentialProviderResponse"}'`, "its answer is a v1 CredentialProviderResponse, want"},
		"with a key of no type":  {prints("Pod", "", "{}"), `cacheKeyType of its answer is "Pod"`},
		"with a login of others": {prints("Image", "", `{"else.org": {"username": "x", "password": "y"}}`), ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := begin(t, entry("bad", "*.example.com")+entry("good", "registry.example.com"))
			w.plugin("bad", tc.answer)
			w.plugin("good", prints("Image", "", `{"registry.example.com": {"username": "ann", "password": "1"}}`))
			got := w.logins("registry.example.com/a")
			if !strings.HasPrefix(got, "ann:1") || !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q beside the login of the other plugin", got, tc.want)
			}
			if before := w.runs("bad"); tc.want != "" && w.logins("registry.example.com/a") != "" && w.runs("bad") != before+1 {
				t.Error("a failure is kept")
			}
		})
	}
}

func TestAProgramThatIsNotThere(t *testing.T) {
	w := begin(t, entry("gone", "*.example.com"))
	if got := w.logins("registry.example.com/a"); !strings.Contains(got, "asking credential provider gone") || !strings.Contains(got, "no such file") {
		t.Errorf("got %q", got)
	}
}
