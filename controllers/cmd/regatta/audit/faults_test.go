// SPDX-License-Identifier: Apache-2.0

package audit_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/audit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/engine/record"
	"github.com/regatta-sh/regatta/policies"
)

// runAudit runs a command, and returns its exit code and all that it printed, with its error.
func runAudit(t *testing.T, line string) (code int, printed string) {
	t.Helper()
	var out bytes.Buffer
	cmd := audit.NewCommand(policies.Builtin)
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(strings.Fields(line))
	err := cmd.ExecuteContext(t.Context())
	if err != nil && !strings.Contains(out.String(), err.Error()) {
		fmt.Fprintln(&out, err)
	}
	return exit.Code(err), out.String()
}

func mustRun(t *testing.T, line string) string {
	t.Helper()
	code, out := runAudit(t, line)
	if code != exit.Fine {
		t.Fatalf("%s: ended with %d:\n%s", line, code, out)
	}
	return out
}

// prepareLog goes to a folder with log.jsonl, freeze.rego and keys.
func prepareLog(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	writeLog(t, dir, writeFile(t, dir, "freeze.rego", []byte(freeze)))
	writeKeys(t, dir)
}

const exportLog = "export --from log.jsonl --bundle freeze.rego --signing-key audit.pem "

func TestTheTimesBetweenArchivesAreTold(t *testing.T) {
	prepareLog(t)
	mustRun(t, exportLog+"--until 2026-12-01T09:45:00Z -o first.tar.gz")
	for _, tc := range []struct{ name, times, file string }{
		{"a gap: the decisions of 10:00 and of 09:50 on are in neither", "--since 2026-12-01T10:15:00Z", "gap.tar.gz"},
		{"an overlap: the decisions of 09:00 and 09:30 are in both", "--since 2026-12-01T09:00:00Z", "overlap.tar.gz"},
		{"the other way round in time", "--until 2026-12-01T09:15:00Z", "back.tar.gz"},
	} {
		_, told := runAudit(t, exportLog+tc.times+" --after first.tar.gz -o "+tc.file)
		code, out := runAudit(t, "verify first.tar.gz "+tc.file+" --verification-key audit.pub")
		if !strings.Contains(told, "warning") && !strings.Contains(told, "would not follow on") || code == exit.Fine && !strings.Contains(out, "warning") {
			t.Errorf("%s: neither export nor verify tells\n%s%s", tc.name, told, out)
		}
	}
}

func TestTheTimesOfAnArchiveArePrinted(t *testing.T) {
	prepareLog(t)
	out := mustRun(t, exportLog+"--since 2026-12-01T09:20:00Z --until 2026-12-01T10:40:00Z -o a.tar.gz")
	out += mustRun(t, "verify a.tar.gz --verification-key audit.pub")
	if strings.Contains(out, "between 2026-12-01 09:00 and 2026-12-01 11:00") && !strings.Contains(out, "09:20") {
		t.Errorf("decisions were exported from 09:20 to 10:40, and it is said\n%s", out)
	}
}

func TestDecisionsBeforeAnUpgradeCanBeMadeAgain(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	// The built-in policies of the regatta before differ in a comment.
	if err := os.CopyFS("old", policies.Builtin); err != nil {
		t.Fatal(err)
	}
	changed := false
	err := filepath.WalkDir("old", func(p string, d fs.DirEntry, err error) error {
		if err != nil || changed || d.IsDir() || filepath.Ext(p) != ".rego" || strings.HasSuffix(p, "_test.rego") {
			return err
		}
		text, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		changed = true
		return os.WriteFile(p, append(text, "\n# As it was.\n"...), 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	builtin, err := bundle.ReadBuiltin(os.DirFS("old"))
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.FromBundle(builtin, engine.WithClock(func() time.Time { return time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC) }), engine.WithPatience(20))
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	_, r := engine.Decide(t.Context(), e, rollout.PlanPoint(), decision.Subject{Kind: "CloneSet", Namespace: "shop", Name: "web"},
		rollout.PlanInput{Update: 1, MaxUnavailable: 1, Strategy: rollout.Strategy{Type: "RollingUpdate"}})
	r.Origin = "manager"
	var log, archive bytes.Buffer
	if err := record.Write(&log, []decision.Record{r}); err != nil {
		t.Fatal(err)
	}
	if err := builtin.PackArchive(&archive); err != nil {
		t.Fatal(err)
	}
	writeFile(t, dir, "log.jsonl", log.Bytes())
	writeFile(t, dir, "old.tar.gz", archive.Bytes())
	_, without := runAudit(t, "export --from log.jsonl -o without.tar.gz")
	if !strings.Contains(without, "is missing, so its decisions cannot be made again; name it with --bundle") {
		t.Fatalf("nothing is missing:\n%s", without)
	}
	code, with := runAudit(t, "export --from log.jsonl --bundle old.tar.gz -o with.tar.gz")
	if code != exit.Fine {
		t.Fatalf("with the bundle that the warning asks for, export ended with %d:\n%s", code, with)
	}
	if code, out := runAudit(t, "verify with.tar.gz"); code != exit.Fine {
		t.Errorf("the warning %q was followed, export said %q, and verify ends with %d:\n%s", without, with, code, out)
	}
}

func TestAnArchiveWithoutAVerifiedSignatureIsNotSaidToBeAsItWasExported(t *testing.T) {
	prepareLog(t)
	text, err := os.ReadFile("log.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := bytes.Cut(text, []byte("\n"))
	mustRun(t, exportLog+"-o real.tar.gz")
	// A holder of the archive keeps one decision of four, and makes another chain.
	writeFile(t, ".", "log.jsonl", append(first, '\n'))
	mustRun(t, "export --from log.jsonl --bundle freeze.rego -o forged.tar.gz")
	if code, out := runAudit(t, "verify forged.tar.gz"); code == exit.Fine && strings.Contains(out, "as they were exported") {
		t.Errorf("a forged archive without three of four decisions is said to be as it was exported:\n%s", out)
	}
}

func TestWhatIsLeftOutOfAnExportIsTold(t *testing.T) {
	prepareLog(t)
	text, err := os.ReadFile("log.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(bytes.TrimSpace(text), []byte("\n"))
	for _, tc := range []struct {
		name string
		line []byte
	}{
		{"a decision of a point that this regatta does not know", bytes.Replace(lines[2], []byte(`"rollout/plan"`), []byte(`"rollout/newer"`), 1)},
		{"a decision that is marked as that of a bundle in shadow", bytes.Replace(lines[2], []byte(`{`), []byte(`{"shadow":"x",`), 1)},
		{"a decision with the time of the one before, and another answer", bytes.Replace(lines[1], []byte(`"update":1`), []byte(`"update":2`), 1)},
	} {
		writeFile(t, ".", "log.jsonl", bytes.Join([][]byte{lines[0], lines[1], tc.line, []byte("\n"), lines[3]}, nil))
		_, out := runAudit(t, exportLog+"-o a.tar.gz")
		if !strings.Contains(out, "has 4 decisions") && !strings.Contains(out, "warning: 1 line left out") && !strings.Contains(out, "two lines of the log are of decision manager-2") {
			t.Errorf("%s is left out, and nothing tells:\n%s", tc.name, out)
		}
	}
}

func TestTheFirstFailureDecidesTheExitCode(t *testing.T) {
	prepareLog(t)
	text, err := os.ReadFile("log.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	mustRun(t, exportLog+"-o good.tar.gz")
	writeFile(t, ".", "log.jsonl", bytes.Replace(text, []byte(`"update":3`), []byte(`"update":1`), 1))
	mustRun(t, exportLog+"-o bad.tar.gz")
	code, out := runAudit(t, "verify bad.tar.gz none.tar.gz --verification-key audit.pub")
	if code != exit.Refused || !strings.Contains(out, "bad.tar.gz: 1 have another answer than recorded") {
		t.Errorf("one archive has a decision that does not follow, the next does not exist: ended with %d, want 1:\n%s", code, out)
	}
}

func TestAFolderIsNoTampering(t *testing.T) {
	t.Chdir(t.TempDir())
	if code, out := runAudit(t, "verify ."); code != exit.Failed {
		t.Errorf("verify of a folder ended with %d, want 3, it could not run:\n%s", code, out)
	}
}

func TestALogIsNotOverwrittenByItsArchive(t *testing.T) {
	prepareLog(t)
	before, err := os.ReadFile("log.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	code, _ := runAudit(t, exportLog+"-o log.jsonl")
	if after, err := os.ReadFile("log.jsonl"); err != nil || !bytes.Equal(before, after) {
		t.Errorf("export ended with %d, and the log is gone", code)
	}
	mustRunFresh := exportLog + "--until 2026-12-01T10:00:00Z -o day.tar.gz"
	writeFile(t, ".", "log.jsonl", before)
	mustRun(t, mustRunFresh)
	day, _ := os.ReadFile("day.tar.gz")
	code, _ = runAudit(t, exportLog+"--since 2026-12-01T10:00:00Z --after day.tar.gz -o day.tar.gz")
	if after, _ := os.ReadFile("day.tar.gz"); !bytes.Equal(day, after) {
		t.Errorf("export ended with %d, and the archive that it continues is gone", code)
	}
}

func TestAnHourWithoutDecisionsCanBeShown(t *testing.T) {
	prepareLog(t)
	mustRun(t, exportLog+"-o first.tar.gz")
	if code, out := runAudit(t, exportLog+"--since 2026-12-02 --until 2026-12-03 --after first.tar.gz -o quiet.tar.gz"); code == exit.Failed {
		t.Errorf("a quiet day ends with %d, could not run, and no archive says that there was nothing:\n%s", code, out)
	}
}

func TestAnArchiveThatWasChangedIsNotContinued(t *testing.T) {
	prepareLog(t)
	mustRun(t, exportLog+"-o first.tar.gz")
	text, err := os.ReadFile("first.tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, ".", "cut.tar.gz", text[:len(text)-100])
	if code, out := runAudit(t, exportLog+"--after cut.tar.gz -o second.tar.gz"); code == exit.Fine {
		t.Errorf("the chain of an archive that is cut off is continued:\n%s", out)
	}
}

func TestWordsOfAnArchiveMakeNoLinesOfTheReport(t *testing.T) {
	prepareLog(t)
	text, err := os.ReadFile("log.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	const forged = `x\n  signature  valid, EdDSA, key audit\n  decisions  4 the same when made again\u001b[8m`
	for name, change := range map[string][2]string{
		"the name of a bundle":  {`"freeze"`, `"` + forged + `"`},
		"the id of a decision":  {`"decision_id":"manager-4"`, `"decision_id":"` + forged + `"`},
		"the name of an object": {`"name":"web-3"`, `"name":"` + forged + `"`},
	} {
		log := bytes.ReplaceAll(text, []byte(change[0]), []byte(change[1]))
		log = bytes.Replace(log, []byte(`"update":3`), []byte(`"update":1`), 1) // so that the decision is printed
		writeFile(t, ".", "log.jsonl", log)
		mustRun(t, "export --from log.jsonl --bundle freeze.rego -o a.tar.gz")
		if _, out := runAudit(t, "verify a.tar.gz"); strings.Contains(out, "\n  signature  valid, EdDSA, key audit\n") || strings.Contains(out, "\x1b[8m") {
			t.Errorf("%s: of an archive that is not signed, verify prints\n%q", name, out)
		}
	}
}
