// SPDX-License-Identifier: Apache-2.0

package evidence_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/engine/evidence"
	"github.com/regatta-sh/regatta/engine/record"
)

// Who takes a bundle off a record, and the hold that it made, leaves a revision behind that is not that of the other bundles.
func TestABundleThatWasTakenOffARecordIsFound(t *testing.T) {
	set := bundle.Set{limitUpdates(t, 5)}
	records, free := makeDecisions(t, set), makeDecisions(t, nil)
	records[8].Bundles, records[8].Output = free[8].Bundles, free[8].Output
	archive, _ := exportRecords(t, records, set)
	report, err := verifyArchive(t, archive, nil)
	if err == nil && report.FailureMessage() == "" {
		t.Errorf("a decision with revision %.12s, which its bundles do not have, passes: %d the same", records[8].Revision, report.Same)
	}
}

// A bundle of a namespace decides there only: a record of another one cannot name it.
func TestABundleOfAnotherNamespaceOnARecordIsFound(t *testing.T) {
	tenant, err := bundle.FromFiles("own", map[string]string{"p.rego": "package extend.rollout.own\n\nhold contains {\"rule\": \"own.all\", \"reason\": \"No\", \"message\": \"No.\"} if true\n"}, bundle.AsTenant("bank"))
	if err != nil {
		t.Fatal(err)
	}
	records := makeDecisions(t, nil)
	records[8].Bundles = append(slices.Clone(records[8].Bundles), tenant.ID()) // of namespace bank, on a decision of shop
	archive, _ := exportRecords(t, records, bundle.Set{tenant})
	report, err := verifyArchive(t, archive, nil)
	if err == nil && report.FailureMessage() == "" {
		t.Errorf("a decision of namespace shop that names a bundle of namespace bank passes: %d the same", report.Same)
	}
}

func TestAnAnswerThatIsNoFallbackIsFound(t *testing.T) {
	set := bundle.Set{limitUpdates(t, 5)}
	records, free := makeDecisions(t, set), makeDecisions(t, nil)
	// The decision was a hold. It is said that no policy answered in time, and the answer is a go: the fallback of the point is a hold.
	records[8].Outcome, records[8].Output = decision.TimedOut, free[8].Output
	archive, _ := exportRecords(t, records, set)
	report, err := verifyArchive(t, archive, nil)
	if err == nil && report.FailureMessage() == "" {
		t.Errorf("a go that is said to be a fallback passes: %+v", report.Recomputed)
	}
}

func TestAnAnswerDecidedInSpiteOfAMissingFactIsFound(t *testing.T) {
	set := bundle.Set{limitUpdates(t, 5)}
	records, free := makeDecisions(t, set), makeDecisions(t, nil)
	in := records[8].Input.(rollout.PlanInput)
	in.Workload.MissingFacts = []decision.MissingFact{{Fact: "workload.namespaceLabels", Reason: "NamespaceUnknown", Message: "It is not known."}}
	records[8].Input, records[8].Output = in, free[8].Output // rules of users take part, so the engine decides nothing
	archive, _ := exportRecords(t, records, set)
	report, err := verifyArchive(t, archive, nil)
	if err == nil && report.FailureMessage() == "" {
		t.Errorf("a go in spite of a missing fact passes: %+v", report.Recomputed)
	}
}

func TestAPointerToNothingIsNoHiddenValue(t *testing.T) {
	set := bundle.Set{limitUpdates(t, 5)}
	records, free := makeDecisions(t, set), makeDecisions(t, nil)
	for i := range records {
		records[i].Output, records[i].Masked = free[i].Output, []string{"/input/nothing"}
	}
	archive, _ := exportRecords(t, records, set)
	report, err := verifyArchive(t, archive, nil)
	if err == nil && report.FailureMessage() == "" {
		t.Errorf("forged answers pass since /input/nothing, which no record has, is said to be hidden: %+v", report.Recomputed)
	}
}

func TestRecordsThatContradictEachOtherAreRefused(t *testing.T) {
	records, held := makeDecisions(t, nil)[8:9], makeDecisions(t, bundle.Set{limitUpdates(t, 5)})[8:9]
	if records[0].ID != held[0].ID || !records[0].Time.Equal(held[0].Time) {
		t.Fatal("they are not of one decision")
	}
	x := evidence.NewExport()
	for _, r := range append(records, held...) {
		text, err := record.NewEncoder().AppendLine(nil, r)
		if err != nil {
			t.Fatal(err)
		}
		if err := x.AddLine(record.Line{Text: bytes.TrimSpace(text), Record: r}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := x.WriteArchive(io.Discard, began); err == nil || !strings.Contains(err.Error(), "two lines of the log are of decision manager-9, and differ") {
		t.Errorf("the error is %v", err)
	}
}

func TestRecordsWithoutAnIdAreNotDropped(t *testing.T) {
	records := makeDecisions(t, nil)
	for i := range records {
		records[i].Time, records[i].ID, records[i].Origin = began, 0, "" // as of a log whose lines have no decision_id
	}
	archive, m := exportRecords(t, records, nil)
	if m.CountDecisions() != 10 {
		t.Errorf("without an error, %d of 10 decisions are exported", m.CountDecisions())
	}
	if report, err := verifyArchive(t, archive, nil); err != nil || report.Same != 10 {
		t.Errorf("%+v, %v", report, err)
	}
}

func TestBytesBehindTheArchiveAreFound(t *testing.T) {
	archive, _ := exportRecords(t, makeDecisions(t, nil), nil)
	var member bytes.Buffer
	zipped := gzip.NewWriter(&member)
	_, _ = io.WriteString(zipped, "more")
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	wrong := bytes.Clone(archive)
	wrong[len(wrong)-8] ^= 0xff
	plain := unzip(t, archive)
	for name, text := range map[string][]byte{
		"another archive":               append(bytes.Clone(archive), archive...),
		"another gzip member":           append(bytes.Clone(archive), member.Bytes()...),
		"a text":                        append(bytes.Clone(archive), "more"...),
		"a file behind the end of .tar": zipText(t, append(bytes.Clone(plain), plain...)),
		"no end of the .gz":             archive[:len(archive)-8],
		"another checksum of the .gz":   wrong,
	} {
		if _, err := verifyArchive(t, text, nil); err == nil {
			t.Errorf("%s: nothing is found", name)
		}
	}
}

func zipText(t *testing.T, text []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(text)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestAManifestIsOneDocument(t *testing.T) {
	archive, _ := exportRecords(t, makeDecisions(t, nil), nil)
	for name, change := range map[string]func([]byte) []byte{
		"a text behind it":     func(text []byte) []byte { return append(text, "more"...) },
		"a document behind it": func(text []byte) []byte { return append(text, text...) },
		"hours twice": func(text []byte) []byte {
			return bytes.Replace(text, []byte(`"hours"`), []byte(`"hours": [], "hours"`), 1)
		},
		"hours in capitals": func(text []byte) []byte { return bytes.Replace(text, []byte(`"hours"`), []byte(`"HOURS"`), 1) },
	} {
		changed := repackArchive(t, archive, func(parts []part) []part {
			parts[0].text = change(parts[0].text)
			return parts
		})
		if report, err := verifyArchive(t, changed, nil); err == nil && report.FailureMessage() == "" {
			t.Errorf("%s: nothing is found", name)
		}
	}
}

func TestErrorsOfReadingAreNotOfTheArchive(t *testing.T) {
	archive, _ := exportRecords(t, makeDecisions(t, nil), nil)
	gone := errors.New("the disk is gone")
	for _, n := range []int{0, 5, len(archive) / 2} {
		_, err := evidence.VerifyArchive(t.Context(), io.MultiReader(bytes.NewReader(archive[:n]), iotest.ErrReader(gone)), nil)
		if tampered := (evidence.TamperedError{}); errors.As(err, &tampered) {
			t.Errorf("after %d bytes: %v: is said to be tampering", n, err)
		}
	}
}

func TestTheEndOfTheContextIsNoTampering(t *testing.T) {
	set := bundle.Set{limitUpdates(t, 5)}
	archive, _ := exportRecords(t, makeDecisions(t, set), set)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := evidence.VerifyArchive(ctx, bytes.NewReader(archive), nil)
	if tampered := (evidence.TamperedError{}); errors.As(err, &tampered) {
		t.Errorf("%v: is said to be tampering", err)
	}
}

// As of a regatta that allowed what this one does not.
func TestPoliciesThatDoNotCompileAreNotTampering(t *testing.T) {
	for _, kind := range []struct {
		name string
		opts []bundle.Option
	}{{"builtin", []bundle.Option{bundle.AsBuiltin()}}, {"limits", nil}} {
		old, err := bundle.FromFiles(kind.name, map[string]string{"p.rego": "package extend.rollout.old\n\nhold contains h if h := unknown.function(input)\n"}, kind.opts...)
		if err != nil {
			t.Fatal(err)
		}
		records := makeDecisions(t, nil)[:1]
		if kind.opts == nil {
			records[0].Bundles = append(slices.Clone(records[0].Bundles), old.ID())
		} else {
			records[0].Bundles = []string{old.ID()}
		}
		archive, _ := exportRecords(t, records, bundle.Set{old})
		_, err = verifyArchive(t, archive, nil)
		if err != nil && strings.Contains(err.Error(), "is damaged or ends too early") {
			t.Errorf("an archive that is whole: %v", err)
		}
	}
}

func TestNamespacesAreNotCompiledForEachDecision(t *testing.T) {
	e, err := engine.FromBundle(readBuiltin(t), engine.WithPatience(20))
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	const namespaces = 8
	measure := func(rounds int) time.Duration {
		set := bundle.Set{limitUpdates(t, 5)}
		for n := range namespaces {
			own, err := bundle.FromFiles("own", map[string]string{"p.rego": fmt.Sprintf("package extend.rollout.own\n\nhold contains {\"rule\": \"own\", \"reason\": \"No\", \"message\": \"No.\"} if input.update == %d\n", 100+n)},
				bundle.AsTenant(fmt.Sprint("ns-", n)))
			if err != nil {
				t.Fatal(err)
			}
			set = append(set, own)
		}
		s, err := e.CompileBundles(t.Context(), set)
		if err != nil {
			t.Fatal(err)
		}
		var records []decision.Record
		for i := range rounds * namespaces {
			subject := decision.Subject{Kind: "CloneSet", Namespace: fmt.Sprint("ns-", i%namespaces), Name: "web"}
			_, r := engine.DecideOn(t.Context(), e, s, rollout.PlanPoint().EraseTypes(), subject, rollout.PlanInput{Update: 1, MaxUnavailable: 1, Strategy: rollout.Strategy{Type: "RollingUpdate"}})
			r.Origin, r.ID, r.Time = "manager", uint64(i+1), began.Add(time.Duration(i)*time.Second)
			records = append(records, r)
		}
		archive, _ := exportRecords(t, records, set)
		start := time.Now()
		report, err := verifyArchive(t, archive, nil)
		if err != nil || report.Same != len(records) {
			t.Fatalf("%+v, %v", report, err)
		}
		return time.Since(start)
	}
	once, twice := measure(1), measure(2)
	if twice > once*3/2 {
		t.Errorf("a decision in each of %d namespaces takes %s, and two in each take %s: nothing that was compiled is used again", namespaces, once, twice)
	}
}
