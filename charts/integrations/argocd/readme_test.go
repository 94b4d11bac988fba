// SPDX-License-Identifier: Apache-2.0

package argocd

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the table of states into README.md")

const (
	tableBegin = "<!-- states: written by go test ./charts/integrations/argocd -update -->\n"
	tableEnd   = "<!-- end of states -->\n"
)

// listRows lists the states of the stored versions as rows of a table. A state that several kinds have is listed with the first.
func listRows(t *testing.T) (rows []string) {
	t.Helper()
	listed := map[string]bool{}
	for _, s := range serveAll(t) {
		if listed[s.prose] || !s.stored {
			continue
		}
		listed[s.prose] = true
		rows = append(rows, fmt.Sprintf("| %s | %s | `%s` | `%s` |", s.kind.Kind, s.prose, s.want.Status, s.want.Message))
	}
	return rows
}

// readTable returns a page, and the rows of its table of states.
func readTable(t *testing.T, file string) (before, table, after string) {
	t.Helper()
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(page), tableBegin)
	table, after, ends := strings.Cut(rest, tableEnd)
	if !begins || !ends {
		t.Fatalf("%s has no table of states", file)
	}
	return before, table, after
}

func TestTableOfStates(t *testing.T) {
	want := "| kind | state | Argo CD shows | message |\n|---|---|---|---|\n" + strings.Join(listRows(t), "\n") + "\n"
	before, got, after := readTable(t, "README.md")
	if *update {
		if err := os.WriteFile("README.md", []byte(before+tableBegin+want+tableEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
		got = want
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the table of states (-want +got):\n%s", diff)
	}
}

// The Chinese table has the same rows, with the states in Chinese.
func TestTableOfStatesInChinese(t *testing.T) {
	_, table, _ := readTable(t, "README.zh-CN.md")
	var want, got []string
	for _, row := range listRows(t) {
		want = append(want, withoutState(row))
	}
	for i, row := range strings.Split(strings.TrimSuffix(table, "\n"), "\n") {
		if i > 1 { // behind the head of the table
			got = append(got, withoutState(row))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the table of states (-want +got):\n%s", diff)
	}
}

// withoutState is a row without its second column.
func withoutState(row string) string {
	columns := strings.SplitN(row, "|", 4)
	if len(columns) < 4 {
		return row
	}
	return columns[1] + "|" + columns[3]
}
