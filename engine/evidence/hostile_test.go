// SPDX-License-Identifier: Apache-2.0

package evidence_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/catalog"
	"github.com/regatta-sh/regatta/engine/evidence"
)

func hashOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// forgeArchive changes files, and makes the manifest and the chain fit again, as a holder of an unsigned archive can.
func forgeArchive(t *testing.T, archive []byte, change func(name string, text []byte) []byte, edit func(*evidence.Manifest)) []byte {
	t.Helper()
	return repackArchive(t, archive, func(parts []part) []part {
		var m evidence.Manifest
		if err := json.Unmarshal(parts[0].text, &m); err != nil {
			t.Fatal(err)
		}
		texts := map[string][]byte{}
		for i := range parts[1:] {
			p := &parts[i+1]
			p.text = change(p.name, p.text)
			texts[p.name] = p.text
		}
		for i := range m.Policies {
			p := &m.Policies[i]
			p.Bytes, p.SHA256 = int64(len(texts[p.File])), hashOf(texts[p.File])
		}
		edit(&m)
		link := m.Previous
		for i := range m.Hours {
			h := &m.Hours[i]
			h.Bytes, h.SHA256 = int64(len(texts[h.File])), hashOf(texts[h.File])
			h.Link = hashOf(fmt.Appendf(nil, "%s\n%s\n%s\n%d\n%d\n%s\n", link, h.Start.UTC().Format(time.RFC3339), h.File, h.Decisions, h.Bytes, h.SHA256))
			link = h.Link
		}
		parts[0].text = encodeManifest(t, m)
		return parts
	})
}

func TestLinesThatAreNotMadeAgainAreFound(t *testing.T) {
	archive, m := exportRecords(t, makeDecisions(t, nil), nil)
	for name, more := range map[string]string{
		"a decision of a bundle in shadow": `{"path":"rollout/plan","shadow":"x","decision_id":"manager-99"}` + "\n",
		"a decision of an unknown point":   `{"path":"rollout/newer","decision_id":"manager-99","result":{"allow":true}}` + "\n",
		"blank lines":                      "\n\n \n",
		"a mark of an editor":              "\uFEFF\n",
	} {
		changed := forgeArchive(t, archive, func(file string, text []byte) []byte {
			if file == m.Hours[0].File {
				return append(bytes.Clone(text), more...)
			}
			return text
		}, func(*evidence.Manifest) {})
		report, err := verifyArchive(t, changed, nil)
		if err == nil && report.FailureMessage() == "" {
			t.Errorf("%s: the file has more than the %d decisions that the report counts", name, report.Manifest.CountDecisions())
		}
	}
}

func TestTheMemoryOfARecordIsBounded(t *testing.T) {
	archive, m := exportRecords(t, makeDecisions(t, nil)[:1], nil)
	const pods = 2 << 20
	line := fmt.Sprintf(`{"decision_id":"x","timestamp":"2026-12-01T09:30:00Z","path":"rollout/rank","outcome":"Timeout","input":{"pods":[{}%s]},"result":{}}`, strings.Repeat(",{}", pods-1))
	archive = forgeArchive(t, archive, func(file string, text []byte) []byte {
		if file == m.Hours[0].File {
			return []byte(line + "\n")
		}
		return text
	}, func(*evidence.Manifest) {})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := verifyArchive(t, archive, nil)
	runtime.ReadMemStats(&after)
	took := (after.Sys - before.Sys) >> 20
	t.Logf("an archive of %d KiB with a line of %d MiB makes the process grow by %d MiB, %v", len(archive)>>10, len(line)>>20, took, err)
	if took > 512 {
		t.Errorf("an archive of %d KiB with a line of %d MiB, of 64 that are allowed, makes the process grow by %d MiB", len(archive)>>10, len(line)>>20, took)
	}
}

func TestAHostileArchiveIsGivenUp(t *testing.T) {
	endless, err := bundle.FromFiles("endless", map[string]string{"p.rego": `package extend.rollout.x

hold contains {"reason": "R", "message": "m"} if {
	some i in numbers.range(1, 30000)
	some j in numbers.range(1, 30000)
	i * j == -1
}
`})
	if err != nil {
		t.Fatal(err)
	}
	records := makeDecisions(t, nil)[:4]
	for i := range records {
		records[i].Bundles = append(slices.Clone(records[i].Bundles), endless.ID())
	}
	archive, _ := exportRecords(t, records, bundle.Set{endless})
	routines := runtime.NumGoroutine()
	start := time.Now()
	report, err := verifyArchive(t, archive, nil)
	took := time.Since(start)
	if err != nil || report.Late == 0 {
		t.Fatalf("%+v, %v", report, err)
	}
	t.Logf("4 decisions take %s", took)
	if took > 10*time.Second {
		t.Errorf("%d decisions of a bundle that does not end take %s, and nothing gives up after the first of them", len(records), took)
	}
	time.Sleep(time.Second)
	if n := runtime.NumGoroutine(); n > routines+2 {
		t.Errorf("%d goroutines are left of %d", n, routines)
	}
}

func TestRecordedRevisionsAreThoseOfTheirBundles(t *testing.T) {
	tenant, err := bundle.FromFiles("own", map[string]string{"p.rego": "package extend.rollout.own\n\nhold contains {\"rule\": \"own\", \"reason\": \"No\", \"message\": \"No.\"} if input.update == 7\n"}, bundle.AsTenant("shop"))
	if err != nil {
		t.Fatal(err)
	}
	for name, set := range map[string][2]bundle.Set{
		"plain":  {nil, nil},
		"tenant": {{limitUpdates(t, 5), tenant}, {limitUpdates(t, 5), tenant}},
		"canary": {{limitUpdates(t, 5), limitUpdates(t, 2, bundle.AsCanary("shop"))}, {limitUpdates(t, 2)}},
	} {
		then, now := makeDecisions(t, set[0])[0], makeDecisions(t, set[1])[0]
		if then.Revision != now.Revision || !slices.Equal(then.Bundles, now.Bundles) {
			t.Errorf("%s: the revision is %.12s of %v, made again %.12s of %v", name, then.Revision, then.Bundles, now.Revision, now.Bundles)
		}
	}
}

// fillValue fills a value at random, with texts that UTF-8 has.
func fillValue(r *rand.Rand, v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.String:
		v.SetString([]string{"", "a", "é\u2028<&>", "\x00", "10"}[r.IntN(5)])
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt([]int64{0, 1, -1, 1<<31 - 1}[r.IntN(4)])
		if v.Kind() != reflect.Int32 && r.IntN(3) == 0 {
			v.SetInt([]int64{1<<53 + 1, 1<<63 - 1, -1 << 63}[r.IntN(3)])
		}
	case reflect.Float64:
		v.SetFloat([]float64{0, 0.1, 1e21, 1e-7, r.Float64(), math.Copysign(0, -1)}[r.IntN(6)])
	case reflect.Pointer:
		if r.IntN(2) == 0 && depth > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fillValue(r, v.Elem(), depth-1)
		}
	case reflect.Slice:
		if n := r.IntN(4) - 1; n >= 0 && depth > 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
			for i := range n {
				fillValue(r, v.Index(i), depth-1)
			}
		}
	case reflect.Map:
		if n := r.IntN(4) - 1; n >= 0 && depth > 0 {
			v.Set(reflect.MakeMap(v.Type()))
			for range n {
				key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
				fillValue(r, key, depth-1)
				fillValue(r, value, depth-1)
				v.SetMapIndex(key, value)
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fillValue(r, v.Field(i), depth-1)
			}
		}
	}
}

func TestFactsSurviveTheLog(t *testing.T) {
	e, err := engine.FromBundle(readBuiltin(t))
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	r := rand.New(rand.NewPCG(1, 2))
	bad := map[decision.Name]bool{}
	for _, p := range catalog.All() {
		for range 300 {
			for _, of := range []reflect.Type{p.In, p.Out} {
				v := reflect.New(of)
				fillValue(r, v.Elem(), 6)
				text, err := json.Marshal(v.Interface())
				if err != nil {
					t.Fatal(err)
				}
				again := reflect.New(of)
				if err := json.Unmarshal(text, again.Interface()); err != nil {
					t.Fatal(err)
				}
				a, err := e.Codec().Encode(v.Elem().Interface())
				b, err2 := e.Codec().Encode(again.Elem().Interface())
				if (err == nil) != (err2 == nil) {
					t.Errorf("%s: %v, %v", p.Name, err, err2)
				}
				if err == nil && err2 == nil && a.Compare(b) != 0 && !bad[p.Name] {
					bad[p.Name] = true
					t.Errorf("%s %s: %.2000s becomes %.2000s", p.Name, of, a, b)
				}
			}
		}
	}
}

func unzip(t *testing.T, archive []byte) []byte {
	t.Helper()
	in, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

// Whatever the bytes are, verifying them ends without a panic, and with an error of the archive.
func TestNoArchiveMakesVerifyPanic(t *testing.T) {
	last := time.Second
	if d, err := time.ParseDuration(os.Getenv("EVIDENCE_FUZZ")); err == nil {
		last = d
	}
	small, err := bundle.FromFiles("builtin", map[string]string{"p.rego": "package rollout\n\nplan := {}\n"}, bundle.AsBuiltin())
	if err != nil {
		t.Fatal(err)
	}
	records := makeDecisions(t, nil)[:4]
	for i := range records {
		records[i].Bundles = []string{small.ID()}
	}
	archive, _ := exportRecords(t, records, bundle.Set{small})
	r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 2))
	words := []string{"", "null", "0", "-1", "{}", "[]", `""`, "1e999", "\n", "9223372036854775807", `"\u0000"`, "2026-12-01T09:30:00+00:30", "0000-01-01T00:00:00Z", "@", "/", strings.Repeat("[", 20000)}
	mutate := func(text []byte) []byte {
		text = bytes.Clone(text)
		for range 1 + r.IntN(4) {
			if len(text) == 0 {
				return text
			}
			i := r.IntN(len(text))
			j := min(len(text), i+r.IntN(12))
			switch r.IntN(4) {
			case 0:
				text[i] ^= 1 << r.IntN(8)
			case 1:
				text = slices.Concat(text[:i], text[j:])
			case 2:
				text = slices.Concat(text[:i], []byte(words[r.IntN(len(words))]), text[j:])
			case 3:
				text = slices.Concat(text[:j], text[i:])
			}
		}
		return text
	}
	tried := 0
	outcomes := map[string]int{}
	for start := time.Now(); time.Since(start) < last; tried++ {
		var changed []byte
		switch r.IntN(5) {
		case 0:
			changed = mutate(archive)
		case 1:
			changed = zipText(t, mutate(unzip(t, archive)))
		case 2:
			changed = repackArchive(t, archive, func(parts []part) []part {
				parts[0].text = mutate(parts[0].text)
				return parts
			})
		default:
			which := r.IntN(2)
			changed = forgeArchive(t, archive, func(file string, text []byte) []byte {
				if strings.HasPrefix(file, "decisions/") == (which == 0) {
					return mutate(text)
				}
				return text
			}, func(m *evidence.Manifest) {
				for i := range m.Hours {
					if r.IntN(4) == 0 {
						m.Hours[i].Decisions--
					}
				}
			})
		}
		report, err := verifyArchive(t, changed, nil)
		var tampered evidence.TamperedError
		var signature bundle.SignatureError
		switch {
		case err == nil && report.Same+report.Different+report.Masked+report.Fallbacks+report.Unmatched+report.Late+report.Without == 0:
			outcomes["nothing"]++
		case err == nil:
			outcomes["verified"]++
		case errors.As(err, &tampered):
			outcomes["tampered"]++
		case errors.As(err, &signature):
			outcomes["signature"]++
		default:
			outcomes["other"]++
			t.Errorf("another error: %v", err)
		}
		if _, err := evidence.CheckArchive(bytes.NewReader(changed), nil); err != nil && !errors.As(err, &tampered) {
			t.Errorf("another error of the manifest: %v", err)
		}
	}
	t.Logf("%d archives: %v", tried, outcomes)
}

func TestTheNamesOfMissingBundlesAreBounded(t *testing.T) {
	records := makeDecisions(t, nil)
	for i := range records {
		records[i].Bundles = []string{fmt.Sprint(strings.Repeat("x", 4<<20), i)}
	}
	archive, _ := exportRecords(t, records, nil)
	archive = forgeArchive(t, archive, func(_ string, text []byte) []byte { return text }, func(m *evidence.Manifest) { m.Missing = nil })
	report, err := verifyArchive(t, archive, nil)
	if err != nil {
		t.Fatal(err)
	}
	kept := 0
	for id, why := range report.Missing {
		kept += len(id) + len(why)
	}
	if kept > 1<<20 {
		t.Errorf("of an archive of %d KiB, the report keeps and prints %d MiB of names of bundles", len(archive)>>10, kept>>20)
	}
}
