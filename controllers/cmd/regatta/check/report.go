// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
)

// Schema names the format of a report as JSON. While it has this name, fields may be added to it, but none is renamed or
// removed.
const Schema = "regatta.sh/check/v1"

// Status says how much a finding matters.
type Status string

// The statuses, the worst first.
const (
	// Blocks is a finding that prevents an installation, or prevents it from working.
	Blocks Status = "Blocks"
	// Warns is a finding about something that works less well than it could, or will stop working.
	Warns Status = "Warns"
	// Unknown is a check that could not be made, such as for lack of a permission.
	Unknown Status = "Unknown"
	// Fine is a check that found no problem.
	Fine Status = "Fine"
)

// allStatuses are all of them, the worst first.
func allStatuses() []Status { return []Status{Blocks, Warns, Unknown, Fine} }

// Phase says which of the two sets of checks was run.
type Phase string

// The phases.
const (
	Before Phase = "Before"
	After  Phase = "After"
)

// Finding is the result of one check.
type Finding struct {
	Status Status `json:"status"`
	// Check is the group of the check, such as rights or webhooks.
	Check string `json:"check"`
	// Object is a kind and a name, Field the field of it that was checked.
	Object  string `json:"object"`
	Field   string `json:"field"`
	Message string `json:"message"`
	// Fix is what to do, empty for nothing: a command wherever there is one.
	Fix string `json:"fix,omitempty"`
}

// Report is the result of all checks, as it is printed.
type Report struct {
	Schema string `json:"schema"`
	Phase  Phase  `json:"phase"`
	// Result is the worst status of the findings.
	Result Status `json:"result"`
	// Client is the version of this program, Manager that of the chart in the cluster, Kubernetes that of the API server. They are empty
	// where they are not known.
	Client     string    `json:"client"`
	Manager    string    `json:"manager,omitempty"`
	Kubernetes string    `json:"kubernetes,omitempty"`
	Namespace  string    `json:"namespace"`
	Findings   []Finding `json:"findings"`
}

// sortFindings puts the worst first, and sets the result.
func (r *Report) sortFindings() {
	slices.SortStableFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(slices.Index(allStatuses(), a.Status), slices.Index(allStatuses(), b.Status)),
			strings.Compare(a.Check, b.Check), strings.Compare(a.Object, b.Object), strings.Compare(a.Field, b.Field))
	})
	r.Result = Fine
	if len(r.Findings) > 0 {
		r.Result = r.Findings[0].Status
	}
}

func (r *Report) countStatus(s Status) int {
	n := 0
	for _, f := range r.Findings {
		if f.Status == s {
			n++
		}
	}
	return n
}

// exitError is an error if any finding blocks or, if strict, if any is not fine.
func (r *Report) exitError(strict bool) error {
	blocks, warns, unknown := r.countStatus(Blocks), r.countStatus(Warns), r.countStatus(Unknown)
	if blocks > 0 || strict && warns+unknown > 0 {
		return exit.RefusalError(fmt.Errorf("%d block, %d warn, and %d could not be looked at", blocks, warns, unknown))
	}
	return nil
}

// printTable writes a report as text for people.
func (r *Report) printTable(out io.Writer) error {
	t := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "STATUS\tCHECK\tOBJECT\tFIELD\tMESSAGE\tFIX")
	for _, f := range mergeAlike(r.Findings) {
		cells := []string{string(f.Status), f.Check, f.Object, f.Field, f.Message, f.Fix}
		for i, cell := range cells {
			cells[i] = cmp.Or(oneLine(cell), "-")
		}
		fmt.Fprintln(t, strings.Join(cells, "\t"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	when := map[Phase]string{Before: "before an installation", After: "of the installation"}[r.Phase]
	_, err := fmt.Fprintf(out, "\nChecked %s in namespace %s: %d fine, %d block, %d warn, %d unknown.\n", when, r.Namespace, r.countStatus(Fine), r.countStatus(Blocks), r.countStatus(Warns), r.countStatus(Unknown))
	return err
}

// mergeAlike merges findings that say the same about several objects.
func mergeAlike(findings []Finding) []Finding {
	var out []Finding
	objects := map[Finding][]string{}
	for _, f := range findings {
		key := f
		key.Object = ""
		if objects[key] = append(objects[key], f.Object); len(objects[key]) == 1 {
			out = append(out, key)
		}
	}
	for n := range out {
		out[n].Object = nameSome(objects[out[n]])
	}
	return out
}

// mostInCell is how many bytes of a message are printed. Some messages are written by webhooks, and may be long.
const mostInCell = 1000

// oneLine is text without line ends, tabs and what is not printable, and not too long.
func oneLine(text string) string {
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\u2028' || r == '\u2029' }), " ")
	return truncateText(text, mostInCell)
}

// truncateText cuts a text to a number of bytes.
func truncateText(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
