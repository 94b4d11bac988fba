// SPDX-License-Identifier: Apache-2.0

package support

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"pgregory.net/rapid"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/policies"
)

func newTestScrubber(t interface{ Fatal(...any) }) *scrubber {
	s, err := newScrubber()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// What is left tells what happened.
func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"":                                                                  "",
		`"Updated" pod="shop/web-1" took="3ms"`:                             `"Updated" pod="shop/web-1" took="3ms"`,
		`pull ghcr.io/x/token-service:v1 in 3s`:                             `pull ghcr.io/x/token-service:v1 in 3s`,
		`err="db_password=hunter2, retry in 3s"`:                            `err="db_password=[masked], retry in 3s"`,
		`db-password:hunter2 of ann`:                                        `db-password:[masked] of ann`,
		`password: "a b" and more`:                                          `password: [masked] and more`,
		`password='a b' and more`:                                           `password=[masked] and more`,
		`{\"password\":\"x y\",\"b\":1}`:                                    `{\"password\":[masked],\"b\":1}`,
		`GET https://ann:hunter2@r.example.com/v2/?x=1 failed`:              `GET https://[masked]@r.example.com/v2/?x=1 failed`,
		`Authorization: Bearer abcdef, and all that follows`:                `Authorization: [masked]`,
		`it sent bearer 0123456789 to the server`:                           `it sent bearer [masked] to the server`,
		`password: correct horse hunter2 staple`:                            `password: [masked]`,
		`err="the password: correct hunter2" took="3ms"`:                    `err="the password: [masked]" took="3ms"`,
		`GET https://hunter2@github.com/x failed`:                           `GET https://[masked]@github.com/x failed`,
		`GET https://x.example.com/b?sv=1&sig=hunter2&x=1 failed`:           `GET https://x.example.com/b?sv=1&sig=[masked]&x=1 failed`,
		`GET https://x.example.com/b?X-Amz-Signature=hunter2: failed`:       `GET https://x.example.com/b?X-Amz-Signature=[masked] failed`,
		`password="a\"hunter2" and more`:                                    `password=[masked] and more`,
		`password="a hunter2`:                                               `password=[masked]`,
		`{\"password\":\"x\\\"hunter2\",\"b\":1}`:                           `{\"password\":[masked],\"b\":1}`,
		`token => hunter2 and token := hunter2.`:                            `token => [masked] and token := [masked]`,
		`tokens=["hunter2"] and more`:                                       `tokens=[masked] and more`,
		`tokens: ["hunter1","hunter]2"], b`:                                 `tokens: [masked], b`,
		`passwords: [hunter1, hunter2] and more`:                            `passwords: [masked] and more`,
		`run --password "a hunter2" --x 'y'`:                                `run --password [masked] --x 'y'`,
		`run --password 'a hunter2' x`:                                      `run --password [masked] x`,
		`dial postgres://ann:hu/nter2@db/x failed`:                          `dial postgres://[masked]@db/x failed`,
		`dial postgres://ann:p@hunter2@db/x failed`:                         `dial postgres://[masked]@db/x failed`,
		`pull docker://r.example.com:5000/x@sha256:ab`:                      `pull docker://r.example.com:5000/x@sha256:ab`,
		`GET https://x.example.com/?x=1\u0026sig=hunter2\u0026y=2`:          `GET https://x.example.com/?x=1\u0026sig=[masked]\u0026y=2`,
		`GET https://x.example.com/?x=1&amp;sig=hunter2&amp;y=2`:            `GET https://x.example.com/?x=1&amp;sig=[masked]&amp;y=2`,
		`{\\\"password\\\":\\\"hunter2 x\\\",\\\"b\\\":1}`:                  `{\\\"password\\\":[masked],\\\"b\\\":1}`,
		`run --token 0123 --verbose x`:                                      `run --token [masked] --verbose x`,
		`got eyJhbGciOi.eyJzdWIi.c2lnbmF0 from it`:                          `got [masked] from it`,
		`key AKIA0123456789ABCDEF of bucket`:                                `key [masked] of bucket`,
		`{"level":"info","msg":"x","token":"hunter2hunter2"}`:               `{"level":"info","msg":"x","token":"[masked]"}`,
		"-----BEGIN RSA PRIVATE KEY-----\\nMII\\n no end":                   "[masked]",
		"a -----BEGIN EC PRIVATE KEY----- x -----END EC PRIVATE KEY----- b": "a [masked] b",
	} {
		s := newTestScrubber(t)
		got := s.maskText(in)
		if got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
		if again := s.maskText(got); again != got {
			t.Errorf("%s: scrubbed again it is %s", got, again)
		}
	}
}

// Each secret of a list is hidden where it stands alone, too.
func TestSecretsOfAListAreHiddenEverywhere(t *testing.T) {
	s := newTestScrubber(t)
	s.maskText(`tokens=["hunter1-first","hunter2-second"]`)
	if got := s.newReplacer().Replace("refused hunter1-first and hunter2-second"); got != "refused [masked] and [masked]" {
		t.Errorf("got %s", got)
	}
}

func TestKeysOverSeveralLines(t *testing.T) {
	s := newTestScrubber(t)
	got := string(s.maskLog([]byte("MIIsecret\n-----END PRIVATE KEY-----\none\n-----BEGIN PRIVATE KEY-----\nMIIsecret\n-----END PRIVATE KEY-----\ntwo\n-----BEGIN PRIVATE KEY-----\nMIIsecret\n")))
	if want := "[masked]\none\n[masked]\ntwo\n[masked]"; got != want {
		t.Errorf("got %q", got)
	}
}

func TestArguments(t *testing.T) {
	in := []any{"/kruise-daemon", "--v=4", "--cloneset-workers=5", "--decision-log-url=https://x/?sig=hunter2", "--enable-pprof", "value1", "-phunter2", "-p", "a=hunter2", "--x y=hunter2", "--addr=https://a:b@c", 7.0}
	for own, want := range map[bool]string{
		true:  `["/kruise-daemon","--v=4","--cloneset-workers=5","--decision-log-url=[masked]","--enable-pprof","[masked]","[masked]","-p","[masked]","[masked]","--addr=[masked]","[masked]"]`,
		false: `["[masked]","--v=[masked]","--cloneset-workers=[masked]","--decision-log-url=[masked]","--enable-pprof","[masked]","[masked]","-p","[masked]","[masked]","--addr=[masked]","[masked]"]`,
	} {
		s := newTestScrubber(t)
		s.own = own
		text, err := json.Marshal(s.maskArguments(in))
		if err != nil || string(text) != want {
			t.Errorf("of the chart %t: got %s, %v", own, text, err)
		}
	}
}

// Whatever is written around a secret that has a place of its own, it does not come out of the object, nor of a log that repeats it.
func TestWhatAnObjectHidesIsHiddenEverywhere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := planted + rapid.StringN(0, 20, -1).Draw(t, "value")
		place := rapid.SampledFrom([]string{"env", "args", "command", "headers", "annotations", "files", "data", "token"}).Draw(t, "place")
		o := map[string]any{"kind": "X", "metadata": map[string]any{"name": "x"}}
		list := []any{rapid.SampledFrom([]string{"--db=", "", "-p", "--a b ", "x="}).Draw(t, "before") + value}
		switch place {
		case "env", "headers":
			o["spec"] = map[string]any{map[string]string{"env": "env", "headers": "httpHeaders"}[place]: []any{map[string]any{"name": "A", "value": value}}}
		case "args", "command":
			o["spec"] = map[string]any{place: list}
		case "annotations":
			o["metadata"] = map[string]any{"name": "x", "annotations": map[string]any{"example.com/a": value}}
		case "files":
			o["spec"] = map[string]any{"files": map[string]any{"a.rego": value}}
		case "data":
			o["data"] = map[string]any{"a": value}
		case "token":
			o["status"] = map[string]any{"token": value, "message": "token=" + value}
		}
		s := newTestScrubber(t)
		text, err := s.maskObject(o)
		if err != nil {
			t.Fatal(err)
		}
		replaced := s.newReplacer().Replace(string(text))
		if place != "token" && strings.Contains(replaced, planted) { // a message may have more words than a value has
			t.Fatalf("%s: %s", place, replaced)
		}
		if !json.Valid([]byte(replaced)) {
			t.Fatalf("%s is no JSON: %s", place, replaced)
		}
		if place == "env" {
			quoted, _ := json.Marshal(value)
			for _, said := range []string{value, string(quoted), fmt.Sprintf("%x", value)} {
				if got := s.newReplacer().Replace("it says " + said + "."); strings.Contains(got, planted) || strings.Contains(got, "504c414e544544") {
					t.Fatalf("a log has it: %s", got)
				}
			}
		}
	})
}

func TestTail(t *testing.T) {
	for _, tc := range []struct {
		most    int
		writes  []string
		want    string
		dropped bool
	}{
		{100, []string{"one\n", "two\n"}, "one\ntwo\n", false},
		{6, []string{"one\n", "two\n", "three\n", "four\n"}, "four\n", true},
		{3, []string{"a long line without an end"}, "", true},
	} {
		end := &tail{most: tc.most}
		for _, text := range tc.writes {
			if _, err := end.Write([]byte(text)); err != nil {
				t.Fatal(err)
			}
		}
		if got := string(end.keptBytes()); got != tc.want || end.dropped != tc.dropped {
			t.Errorf("got %q, dropped %t, want %q", got, end.dropped, tc.want)
		}
	}
}

func TestNamesStayInTheArchive(t *testing.T) {
	for in, want := range map[string]string{"logs/a/b.log": "logs/a/b.log", "../../etc/passwd": "etc/passwd", "/a/../b": "b", "a\nb:c": "a_b_c"} {
		if got := cleanName(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestTyping(t *testing.T) {
	dir := t.TempDir()
	taken := filepath.Join(dir, "taken")
	if err := os.WriteFile(taken, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	failed := filepath.Join(dir, "failed")
	for name, tc := range map[string]struct {
		args []string
		code int
		says string
	}{
		"a file that is there": {[]string{"-f", taken}, exit.Usage, "there is such a file"},
		"a folder that is not": {[]string{"-f", filepath.Join(dir, "no", "x")}, exit.Failed, "making the archive"},
		"too small":            {[]string{"--max-size", "10"}, exit.Usage, "--max-size is 10: it must be 1048576 at least"},
		"no time":              {[]string{"--timeout", "0s"}, exit.Usage, "--timeout is 0s"},
		"less than nothing":    {[]string{"--objects", "-1"}, exit.Usage, "--objects, --agents and --decisions must not be less than 0"},
		"less than no log":     {[]string{"--log-bytes", "-1"}, exit.Usage, "--log-bytes is -1"},
		"no API server":        {[]string{"-f", failed}, exit.Failed, "asking the API server"},
		"an argument":          {[]string{"x"}, exit.Usage, "unknown command"},
	} {
		t.Run(name, func(t *testing.T) {
			root := &cobra.Command{Use: "regatta", SilenceUsage: true, SilenceErrors: true}
			root.AddCommand(NewCommand(policies.Builtin))
			root.SetOut(&bytes.Buffer{})
			root.SetArgs(append([]string{"support", "--server", "http://127.0.0.1:1", "--timeout", "1s"}, tc.args...))
			err := exit.WithExitCodes(root).ExecuteContext(t.Context())
			if exit.Code(err) != tc.code || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("it ends with %d, %v", exit.Code(err), err)
			}
		})
	}
	if text, err := os.ReadFile(taken); err != nil || string(text) != "mine" {
		t.Errorf("the file that was there has %q, %v", text, err)
	}
	if _, err := os.Stat(failed); err == nil {
		t.Error("an archive that is not whole is left behind")
	}
}

// A manifest that is too long is cut, and everything of an archive is in its bounds.
func TestManifest(t *testing.T) {
	a := &archive{scrub: newTestScrubber(t), most: leastSize}
	for n := range 20_000 {
		a.recordOmission(fmt.Sprint("object ", n), "there are too many password=hunter2")
	}
	a.addFile("x", bytes.Repeat([]byte("x"), 2*leastSize))
	a.addFile("y", []byte("y"))
	var out bytes.Buffer
	if n, err := a.writeTo(&out, "header", time.Unix(1, 0)); err != nil || n != 2 {
		t.Fatalf("%d files, %v", n, err)
	}
	files := readArchive(t, &out)
	manifest := files["manifest.txt"]
	if len(manifest) > leastSize/ofManifest || !strings.HasSuffix(manifest, "(the rest of this listing is left out)\n") || strings.Contains(manifest, "hunter2") || files["y"] != "y" {
		t.Errorf("the manifest has %d bytes and ends with %q", len(manifest), manifest[max(0, len(manifest)-100):])
	}
}
