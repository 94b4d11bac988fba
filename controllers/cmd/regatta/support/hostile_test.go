// SPDX-License-Identifier: Apache-2.0

package support

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Forms in which programs write secrets, with quotes that do not match, with documents in documents, and over several lines: nothing of the
// secret, which are the words hunter2 and staple, is left.
func TestHostileFormsOfSecrets(t *testing.T) {
	for name, in := range map[string]string{
		"a quote of the other sort":         `password="it's hunter2 staple" and more`,
		"a quote of YAML":                   `password: 'it''s hunter2 staple' and more`,
		"a quote within quotes":             `password='it's hunter2 staple' and more`,
		"a quote of a shell":                `password='it\'s hunter2 staple' and more`,
		"a quote of a shell, closed":        `password='it'\''s hunter2 staple' and more`,
		"parts of a shell":                  `password=a"hunter2 staple"`,
		"parts of a shell behind a blank":   `password=a" hunter2 staple"`,
		"parts of a shell, of two sorts":    `password="a"'hunter2 staple' x`,
		"quotes and a word":                 `password="a"hunter2,staple`,
		"a blank behind a backslash":        `--password a\ hunter2\ staple x`,
		"a quote that is not closed":        `password="hunter2 staple`,
		"one that is escaped at last":       `password="hunter2 \" staple`,
		"a backslash at last":               `password="a\\", token="hunter2 staple"`,
		"escaped by two backslashes":        `password=\\"hunter2 \\"staple\\" x`,
		"logfmt":                            `level=error password="with \" hunter2 \" staple inside" x=1`,
		"a list of Go":                      `run ["--x" "--password" "hunter2 staple" "--y"]`,
		"a list of Go with quotes":          `run ["--token" "x\"y hunter2" "--secret" "it's staple"]`,
		"a list of JSON":                    `"args":["--password","hunter2 staple"]`,
		"a list of YAML":                    `args: [--password, hunter2, --token, 'it''s staple']`,
		"a list with a quote too many":      `passwords=['a "hunter2', 'staple']`,
		"a list that is not closed":         `tokens: ["a", "hunter2 staple`,
		"a list in a list":                  `tokens: [a, [b, hunter2], staple] and more`,
		"a map":                             `credentials: {"user": "ann", "x": "hunter2 staple"} and more`,
		"a map of Go":                       `options map[password:hunter2 staple user:ann]`,
		"a map of Go in quotes":             `err="options map[password:hunter2 staple user:ann]" x=1`,
		"a struct of Go":                    `dial {User:ann Password:hunter2 staple Host:x}`,
		"a list of a type of Go":            `tokens=[]string{"hunter2", "it's \"staple\""}`,
		"a comma":                           `token=a,hunter2;staple x`,
		"words with a quote":                `password: correct "hunter2" staple`,
		"words in quotes":                   `err="the password: it's a \"hunter2\" staple" took="3ms"`,
		"a flag":                            `run --password 'a hunter2 staple' x`,
		"a flag with a quote":               `run --token="x\"y hunter2 staple" x`,
		"a flag whose value has a dash":     `run --password -hunter2-staple x`,
		"an account":                        `curl -u ann:hunter2!staple https://x`,
		"an account in quotes":              `curl --user "ann:hunter2 staple" https://x`,
		"JSON in JSON":                      `{"msg":"{\"password\":\"a\\\"hunter2 staple\"}"}`,
		"JSON in a line":                    `1128 got {"msg":"{\"password\":\"a\\\"hunter2 staple\",\"b\":1}"} x`,
		"JSON in JSON in a line":            `1128 got {\"msg\":\"{\\\"password\\\":\\\"it's hunter2 \\\\\\\"staple\\\"}\"} x`,
		"a password of a URL":               `dial postgres://ann:hu'nter2"hunter2-staple@db/x failed`,
		"a password of numbers in a URL":    `dial redis://:123'hunter2staple@db:6379 failed`,
		"a source of a database":            `open ann:p@hunter2/staple@tcp(db:3306)/x: refused`,
		"a bearer":                          `sent Bearer hunter2!staple to x`,
		"a bearer in quotes":                `sent Bearer "hunter2staple" to x`,
		"a header in a list":                `headers map[Authorization:[Bearer hunter2 staple] Accept:[x]]`,
		"a variable":                        `env: [{"name":"DB_PASSWORD","value":"it's hunter2 staple"}]`,
		"a variable of Go":                  `EnvVar{Name:DB_PASSWORD, Value:hunter2 staple, ValueFrom:nil}`,
		"a variable of Go without a comma":  `{Name:DB_PASSWORD Value:hunter2 staple ValueFrom:nil}`,
		"a Secret":                          `{"kind":"Secret","data":{"a":"hunter2","b":"staple"}}`,
		"a Secret in a line":                `got {"kind":"Secret","data":{"a":"hunter2","b":"staple"}} x`,
		"a Secret of Go":                    `Secret{Name:x Data:map[a:hunter2 b:staple]}`,
		"lines of a list":                   "x: 1\ntokens:\n- hunter2\n- staple\ny: 2",
		"lines of a list that is indented":  "spec:\n  secrets:\n    - hunter2\n    - a: staple\n  y: 2",
		"lines of a block":                  "password: |\n  hunter2\n\n  staple\ny: 2",
		"lines of a value":                  "password: a\n  hunter2\n  staple\ny: 2",
		"lines of a value in quotes":        "- password: \"a\n    hunter2\n    staple\"\n  y: 2",
		"lines of arguments":                "args:\n- --x\n- --password\n- hunter2 staple\n- --y",
		"lines of arguments of JSON":        "[\n \"--password\",\n \"hunter2 staple\",\n \"--y\"\n]",
		"lines of a variable":               "env:\n- name: DB_PASSWORD\n  value: it's hunter2\n    staple\n- name: X",
		"lines of a variable of JSON":       "{\n \"name\": \"DB_PASSWORD\",\n \"value\": \"hunter2 staple\"\n}",
		"lines of a Secret":                 "kind: Secret\ndata:\n  a: hunter2\n  b: >-\n    staple\ntype: Opaque",
		"lines of JSON behind a prefix":     "I1128 got \"tokens\": [\n  \"hunter2\",\n  \"staple\"\n]",
		"lines of a key":                    "a\n  -----BEGIN OPENSSH PRIVATE KEY-----\n  hunter2\n  staple\n  -----END OPENSSH PRIVATE KEY-----\nb",
		"lines of a key of PGP":             "a\n-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nhunter2\nstaple\n-----END PGP PRIVATE KEY BLOCK-----\nb",
		"lines of a key without its begin":  "hunter2\nstaple\n-----END PGP PRIVATE KEY BLOCK-----\nb",
		"lines of a key in a text of JSON":  `{"msg":"a -----BEGIN EC PRIVATE KEY-----\nhunter2\nstaple\n-----END EC PRIVATE KEY-----\n"}`,
		"lines that are escaped in a value": `password="a\nhunter2\nstaple" x`,
	} {
		t.Run(name, func(t *testing.T) {
			for how, got := range map[string]string{
				"a text": newTestScrubber(t).maskText(in), "a log": string(newTestScrubber(t).maskLog([]byte(in))),
			} {
				if strings.Contains(got, "hunter2") || strings.Contains(got, "staple") {
					t.Errorf("as %s: %s\nleaves  %s", how, in, got)
				}
				if again := newTestScrubber(t).maskText(got); strings.Contains(again, "hunter2") {
					t.Errorf("scrubbed again it is %s", again)
				}
			}
		})
	}
}

// What is beside a secret over several lines tells what happened.
func TestLinesBesideASecretStay(t *testing.T) {
	in := "spec:\n  replicas: 3\n  tokens:\n  - hunter2\n  image: web:1\n  args:\n  - --password\n  - hunter2\n  - --verbose\n  env:\n  - name: DB_PASSWORD\n    value: hunter2\n  - name: ZONE\n    value: a\n"
	want := "spec:\n  replicas: 3\n  tokens:\n  [masked]\n  image: web:1\n  args:\n  - --password\n  [masked]\n  - --verbose\n  env:\n  - name: DB_PASSWORD\n    value: [masked]\n  - name: ZONE\n    value: a\n"
	if got := string(newTestScrubber(t).maskLog([]byte(in))); got != want {
		t.Errorf("got\n%s", got)
	}
}

// Whatever quotes, brackets and backslashes are in a secret that ends a line, and whatever is before it: nothing of it is left.
func TestNoQuoteLeavesASecret(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.SampledFrom([]string{`"`, `'`, `\`, `\"`, `[`, `]`, `{`, `}`, `,`, "a", planted})
		value := strings.Join(rapid.SliceOfN(part, 1, 12).Draw(t, "value"), "")
		before := rapid.SampledFrom([]string{"", `err="x" `, "[a] ", `{"a":1} `}).Draw(t, "before")
		for _, form := range []string{"password=%s", "--password=%s", "tokens=[%s", `token="%s`, "token='%s", "tokens: {%s"} {
			in := before + fmt.Sprintf(form, value)
			if got := newTestScrubber(t).maskText(in); strings.Contains(got, planted) && isWhole(value) {
				t.Fatalf("%s leaves %s", in, got)
			}
		}
	})
}

// isWhole reports whether a value has no bracket or comma by which it may end. Where it does, what follows is beside it.
func isWhole(value string) bool { return !strings.ContainsAny(value, "])},;") }
