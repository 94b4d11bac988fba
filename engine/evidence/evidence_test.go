// SPDX-License-Identifier: Apache-2.0

package evidence_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	opabundle "github.com/open-policy-agent/opa/v1/bundle"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/engine/evidence"
	"github.com/regatta-sh/regatta/engine/record"
	"github.com/regatta-sh/regatta/policies"
)

// began is when the first decision is made: the fourth one is of the next hour.
var began = time.Date(2026, 12, 1, 9, 30, 0, 0, time.UTC)

func readBuiltin(t *testing.T) *bundle.Bundle {
	t.Helper()
	b, err := bundle.ReadBuiltin(policies.Builtin)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// limitUpdates is a bundle that holds workloads of which more than some pods are to be updated.
func limitUpdates(t *testing.T, limit int, opts ...bundle.Option) *bundle.Bundle {
	t.Helper()
	b, err := bundle.FromFiles("limits", map[string]string{"p.rego": fmt.Sprintf(`package extend.rollout.limits

# METADATA
# labels:
#   id: limits.many
hold contains {"rule": "limits.many", "reason": "TooMany", "message": "There are too many."} if input.update > %d
`, limit)}, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// makeDecisions asks for the plans of 0 to 9 pods, one every ten minutes, in namespace shop.
func makeDecisions(t *testing.T, set bundle.Set) []decision.Record {
	t.Helper()
	at := began
	e, err := engine.FromBundle(readBuiltin(t), engine.WithClock(func() time.Time { return at }), engine.WithPatience(20))
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if err := e.ActivateBundles(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	var out []decision.Record
	for n := range 10 {
		subject := decision.Subject{Kind: "CloneSet", Namespace: "shop", Name: fmt.Sprint("web-", n)}
		_, r := engine.Decide(t.Context(), e, rollout.PlanPoint(), subject, rollout.PlanInput{Update: n, MaxUnavailable: 1, Strategy: rollout.Strategy{Type: "RollingUpdate"}})
		r.Origin = "manager"
		out = append(out, r)
		at = at.Add(10 * time.Minute)
	}
	return out
}

// exportRecords makes an archive of records, in reverse order and each twice.
func exportRecords(t *testing.T, records []decision.Record, set bundle.Set, opts ...evidence.ExportOption) ([]byte, *evidence.Manifest) {
	t.Helper()
	x := evidence.NewExport(opts...)
	for i := range 2 * len(records) {
		r := records[len(records)-1-i/2]
		text, err := record.NewEncoder().AppendLine(nil, r)
		if err != nil {
			t.Fatal(err)
		}
		if err := x.AddLine(record.Line{Text: bytes.TrimSpace(text), Record: r}); err != nil {
			t.Fatal(err)
		}
	}
	x.AddPolicies(append(bundle.Set{readBuiltin(t)}, set...)...)
	var archive bytes.Buffer
	m, err := x.WriteArchive(&archive, began.Add(24*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	return archive.Bytes(), m
}

func verifyArchive(t *testing.T, archive []byte, by *bundle.Verification) (*evidence.Report, error) {
	t.Helper()
	return evidence.VerifyArchive(t.Context(), bytes.NewReader(archive), by)
}

// part is a file of an archive.
type part struct {
	name string
	text []byte
}

// repackArchive changes the files of an archive.
func repackArchive(t *testing.T, archive []byte, change func([]part) []part) []byte {
	t.Helper()
	zipped, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	var parts []part
	for in := tar.NewReader(zipped); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, part{h.Name, text})
	}
	var out bytes.Buffer
	gz := gzip.NewWriter(&out)
	w := tar.NewWriter(gz)
	for _, p := range change(parts) {
		if err := w.WriteHeader(&tar.Header{Name: p.name, Mode: 0o644, Size: int64(len(p.text)), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(p.text); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), gz.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func encodeManifest(t *testing.T, m evidence.Manifest) []byte {
	t.Helper()
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(text, '\n')
}

func TestEvidenceOfAllKindsOfBundlesIsRecomputed(t *testing.T) {
	tenant, err := bundle.FromFiles("own", map[string]string{"p.rego": `package extend.rollout.own

hold contains {"rule": "own.seven", "reason": "Seven", "message": "No seven."} if input.update == 7
`}, bundle.AsTenant("shop"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name     string
		set      bundle.Set
		policies int
	}{
		{"built-in policies alone", nil, 1},
		{"a bundle of the platform", bundle.Set{limitUpdates(t, 5)}, 2},
		{"bundles of the platform and of a namespace", bundle.Set{limitUpdates(t, 5), tenant}, 3},
		{"a canary, which is there in place of the bundle of its name", bundle.Set{limitUpdates(t, 5), limitUpdates(t, 2, bundle.AsCanary("shop"))}, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			archive, m := exportRecords(t, makeDecisions(t, tc.set), tc.set)
			if len(m.Hours) != 3 || m.Hours[0].Decisions != 3 || m.CountDecisions() != 10 {
				t.Errorf("%d decisions are in %+v", m.CountDecisions(), m.Hours)
			}
			if len(m.Policies) != tc.policies || len(m.Missing) > 0 {
				t.Errorf("%d bundles, %v missing", len(m.Policies), m.Missing)
			}
			report, err := verifyArchive(t, archive, nil)
			if err != nil {
				t.Fatal(err)
			}
			if report.Same != 10 || report.FailureMessage() != "" || report.Signature != nil {
				t.Errorf("%+v", report)
			}
		})
	}
}

func TestAnswersThatDoNotFollowAreFound(t *testing.T) {
	set := bundle.Set{limitUpdates(t, 5)}
	made := makeDecisions(t, set)
	other := makeDecisions(t, bundle.Set{limitUpdates(t, 8)})
	for _, tc := range []struct {
		name    string
		edit    func([]decision.Record)
		bundles bundle.Set
		want    evidence.Recomputed
		failure string
	}{
		{
			"an answer of other policies", func(r []decision.Record) { r[6].Output = other[6].Output }, set,
			evidence.Recomputed{Same: 9, Different: 1}, "1 have another answer than recorded",
		},
		{
			"other facts", func(r []decision.Record) {
				in := r[6].Input.(rollout.PlanInput)
				in.Update = 1
				r[6].Input = in
			}, set,
			evidence.Recomputed{Same: 9, Different: 1}, "1 have another answer than recorded",
		},
		{
			"an answer of other policies where values are hidden", func(r []decision.Record) {
				in := r[6].Input.(rollout.PlanInput)
				in.Workload.Annotations = map[string]string{"a/b": "[masked]"}
				r[6].Input, r[6].Output, r[6].Masked = in, other[6].Output, []string{"/input/workload/annotations/a~1b"}
			}, set,
			evidence.Recomputed{Same: 9, Masked: 1}, "",
		},
		{
			"a fallback", func(r []decision.Record) {
				r[6].Outcome, r[6].Output = decision.TimedOut, rollout.PlanPoint().EraseTypes().Undecided(r[6].Input, true)
			}, set,
			evidence.Recomputed{Same: 9, Fallbacks: 1}, "",
		},
		{
			"an answer that is said to be a fallback", func(r []decision.Record) { r[6].Outcome, r[6].Output = decision.TimedOut, other[6].Output }, set,
			evidence.Recomputed{Same: 9, Different: 1}, "1 have another answer than recorded",
		},
		{
			"a bundle that is missing", func([]decision.Record) {}, nil,
			evidence.Recomputed{Without: 10, Missing: map[string]string{set[0].ID(): "the archive does not have it"}}, "10 need bundles that are missing or do not compile",
		},
		{
			"a decision that names no bundle", func(r []decision.Record) { r[6].Bundles = nil }, set,
			evidence.Recomputed{Same: 9, Without: 1, Missing: map[string]string{"builtin": "a record does not name them"}}, "1 need bundles that are missing or do not compile",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			records := append([]decision.Record{}, made...)
			tc.edit(records)
			archive, m := exportRecords(t, records, tc.bundles)
			if (len(m.Missing) > 0) != (tc.bundles == nil) {
				t.Errorf("missing is %v", m.Missing)
			}
			report, err := verifyArchive(t, archive, nil)
			if err != nil {
				t.Fatal(err)
			}
			got := report.Recomputed
			if fmt.Sprint(got.Same, got.Different, got.Masked, got.Fallbacks, got.Unmatched, got.Late, got.Without) !=
				fmt.Sprint(tc.want.Same, tc.want.Different, tc.want.Masked, tc.want.Fallbacks, tc.want.Unmatched, tc.want.Late, tc.want.Without) || len(got.Missing) != len(tc.want.Missing) {
				t.Errorf("recomputed %+v, want %+v", got, tc.want)
			}
			for id, why := range tc.want.Missing {
				if got.Missing[id] != why {
					t.Errorf("missing are %v, want %v", got.Missing, tc.want.Missing)
				}
			}
			if got.FailureMessage() != tc.failure {
				t.Errorf("failure %q, want %q", got.FailureMessage(), tc.failure)
			}
			if tc.want.Different > 0 && (len(got.Differences) != 1 || got.Differences[0].Subject.Name != "web-6" || got.Differences[0].Decision != "manager-7") {
				t.Errorf("differences are %+v", got.Differences)
			}
		})
	}
}

func TestChangesOfAnArchiveAreFound(t *testing.T) {
	set := bundle.Set{limitUpdates(t, 5)}
	archive, m := exportRecords(t, makeDecisions(t, set), set)
	find := func(parts []part, prefix string) int {
		for i, p := range parts {
			if strings.HasPrefix(p.name, prefix) {
				return i
			}
		}
		t.Fatalf("no file begins with %s", prefix)
		return 0
	}
	// editManifest changes what the manifest says, and nothing else.
	editManifest := func(edit func(*evidence.Manifest)) func([]part) []part {
		return func(parts []part) []part {
			var m evidence.Manifest
			if err := json.Unmarshal(parts[0].text, &m); err != nil {
				t.Fatal(err)
			}
			edit(&m)
			parts[0].text = encodeManifest(t, m)
			return parts
		}
	}
	for _, tc := range []struct {
		name   string
		change func([]part) []part
		want   string
	}{
		{"a word of a decision", func(parts []part) []part {
			i := find(parts, "decisions/")
			parts[i].text = bytes.Replace(parts[i].text, []byte("web-1"), []byte("web-7"), 1)
			return parts
		}, "it was changed"},
		{"a decision less", func(parts []part) []part {
			i := find(parts, "decisions/")
			_, parts[i].text, _ = bytes.Cut(parts[i].text, []byte("\n"))
			return parts
		}, "it was changed"},
		{"a bundle", func(parts []part) []part {
			i := find(parts, "policies/")
			parts[i].text = append(parts[i].text, 0)
			return parts
		}, "it was changed"},
		{"an hour less", func(parts []part) []part { return parts[:len(parts)-1] }, m.Hours[2].File + ": the file is missing"},
		{"a file more", func(parts []part) []part { return append(parts, part{"more", []byte("more")}) }, "more: the manifest does not name the file"},
		{"a file twice", func(parts []part) []part { return append(parts, parts[len(parts)-1]) }, "the manifest does not name the file"},
		{"another order", func(parts []part) []part {
			n := len(parts)
			parts[n-1], parts[n-2] = parts[n-2], parts[n-1]
			return parts
		}, "was to come here"},
		{"an hour less in the manifest, too", func(parts []part) []part {
			return editManifest(func(m *evidence.Manifest) { m.Hours = append(m.Hours[:1], m.Hours[2:]...) })(append(parts[:len(parts)-2], parts[len(parts)-1]))
		}, "hours[1].link does not follow from the link before it"},
		{"the first hour less", editManifest(func(m *evidence.Manifest) { m.Hours = m.Hours[1:] }), "hours[0].link does not follow"},
		{"a number of decisions", editManifest(func(m *evidence.Manifest) { m.Hours[0].Decisions++ }), "hours[0].link does not follow"},
		{"the archive before", editManifest(func(m *evidence.Manifest) { m.Previous = strings.Repeat("ab", 32) }), "hours[0].link does not follow"},
		{"a time that leaves decisions out", editManifest(func(m *evidence.Manifest) { at := began.Add(time.Minute); m.Since = &at }), "line 1: the decision is not between since and until"},
		{"another version", editManifest(func(m *evidence.Manifest) { m.Version = 2 }), "version is 2, and this regatta reads version 1"},
		{"a path out of the archive", editManifest(func(m *evidence.Manifest) { m.Policies[0].File = "../../etc/passwd" }), "policies[0].file is"},
		{"a bundle of too many bytes", editManifest(func(m *evidence.Manifest) { m.Policies[0].Bytes = 1 << 40 }), "policies[0].bytes is"},
		{"a field that no manifest has", func(parts []part) []part {
			parts[0].text = bytes.Replace(parts[0].text, []byte(`"version"`), []byte(`"hours2": 1, "version"`), 1)
			return parts
		}, "hours2"},
		{"no manifest", func(parts []part) []part { return parts[1:] }, "manifest.json was to come here"},
		{"nothing", func([]part) []part { return nil }, "manifest.json: the file is missing"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := verifyArchive(t, repackArchive(t, archive, tc.change), nil)
			var tampered evidence.TamperedError
			if !errors.As(err, &tampered) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the error is %v, want one with %q", err, tc.want)
			}
		})
	}
	for name, text := range map[string][]byte{"a text": []byte("text"), "nothing": nil, "the beginning": archive[:len(archive)/2]} {
		_, err := verifyArchive(t, text, nil)
		if tampered := (evidence.TamperedError{}); !errors.As(err, &tampered) {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
}

func TestABundleThatIsNotItsRevisionIsFound(t *testing.T) {
	set := bundle.Set{limitUpdates(t, 5)}
	made := makeDecisions(t, set)
	looser := *limitUpdates(t, 9)
	looser.Revision = set[0].Revision // as an exporter could pretend
	archive, _ := exportRecords(t, made, bundle.Set{&looser})
	_, err := verifyArchive(t, archive, nil)
	var tampered evidence.TamperedError
	if !errors.As(err, &tampered) || !strings.Contains(err.Error(), "its content has the revision") {
		t.Errorf("the error is %v", err)
	}
}

func TestSignaturesAreVerified(t *testing.T) {
	makeKeys := func() (private, public string) {
		pub, key, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		encode := func(kind string, der []byte, err error) string {
			if err != nil {
				t.Fatal(err)
			}
			return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
		}
		der, err := x509.MarshalPKCS8PrivateKey(key)
		private = encode("PRIVATE KEY", der, err)
		der, err = x509.MarshalPKIXPublicKey(pub)
		return private, encode("PUBLIC KEY", der, err)
	}
	private, public := makeKeys()
	_, otherPublic := makeKeys()
	trust := func(key string) *bundle.Verification {
		return &bundle.Verification{Keys: map[string]*opabundle.KeyConfig{"audit": {Key: key}}, Required: true}
	}
	made := makeDecisions(t, nil)
	signed, _ := exportRecords(t, made, nil, evidence.SignWith(bundle.Signing{Key: private, KeyID: "audit"}))
	unsigned, _ := exportRecords(t, made, nil)
	changed := repackArchive(t, signed, func(parts []part) []part {
		parts[0].text = bytes.Replace(parts[0].text, []byte("2026-12-02"), []byte("2026-12-03"), 1)
		return parts
	})
	for _, tc := range []struct {
		name     string
		archive  []byte
		by       *bundle.Verification
		verified bool
		want     string
	}{
		{"with the key", signed, trust(public), true, ""},
		{"with another key", signed, trust(otherPublic), false, "was not made with the key"},
		{"without a signature", unsigned, trust(public), false, "must be signed"},
		{"a manifest that was changed", changed, trust(public), false, "not as it was signed"},
		{"without a key nothing is verified", signed, nil, false, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			report, err := verifyArchive(t, tc.archive, tc.by)
			if tc.want != "" {
				var signature bundle.SignatureError
				if !errors.As(err, &signature) || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("the error is %v, want one with %q", err, tc.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if s := report.Signature; s == nil || s.Verified != tc.verified || s.KeyID != "audit" {
				t.Errorf("the signature is %+v", s)
			}
		})
	}
}

func TestAnArchiveContinuesTheOneBefore(t *testing.T) {
	made := makeDecisions(t, nil)
	at := began.Add(30 * time.Minute)
	first, _ := exportRecords(t, made, nil, evidence.LimitTimes(time.Time{}, at))
	m, err := evidence.CheckArchive(bytes.NewReader(first), nil)
	if err != nil {
		t.Fatal(err)
	}
	second, n := exportRecords(t, made, nil, evidence.LimitTimes(at, time.Time{}), evidence.ContinueChain(m.LastLink()))
	if m.CountDecisions() != 3 || n.CountDecisions() != 7 || n.Previous != m.Hours[len(m.Hours)-1].Link {
		t.Errorf("%+v is followed by %+v", m, n)
	}
	if report, err := verifyArchive(t, second, nil); err != nil || report.Same != 7 {
		t.Errorf("%+v, %v", report, err)
	}
}

func TestTheSameDecisionsMakeTheSameArchive(t *testing.T) {
	set := bundle.Set{limitUpdates(t, 5)}
	made := makeDecisions(t, set)
	a, _ := exportRecords(t, made, set)
	b, _ := exportRecords(t, made, set)
	if !bytes.Equal(a, b) {
		t.Error("two exports of the same decisions differ")
	}
}
