// SPDX-License-Identifier: Apache-2.0

// Package output has the flag that selects the format of a command's output, and
// the formats that several commands share.
package output

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The forms. Text is for people and may change; the others are for programs.
const (
	Text   = "text"
	JSON   = "json"
	YAML   = "yaml"
	JUnit  = "junit"
	SARIF  = "sarif"
	GitHub = "github"
)

// Form is the value of the flag -o: one of the forms that a command has. Other
// values are refused while the flags are read.
type Form struct {
	value string
	of    []string
}

// New makes a flag of these forms. The first is the default.
func New(of ...string) *Form { return &Form{of[0], of} }

// AddTo adds the flag to a command, named as in kubectl. The name that opa has for it is accepted as
// well.
func (f *Form) AddTo(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.VarP(f, "output", "o", "how to print: "+strings.Join(f.of, ", "))
	flags.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "format" {
			name = "output"
		}
		return pflag.NormalizedName(name)
	})
}

// String is the form that was asked for.
func (f *Form) String() string { return f.value }

// Type is what help calls a value.
func (f *Form) Type() string { return "form" }

// Set accepts one of the forms.
func (f *Form) Set(v string) error {
	if !slices.Contains(f.of, v) {
		return fmt.Errorf("it is one of %s", strings.Join(f.of, ", "))
	}
	f.value = v
	return nil
}

// PrintJSON prints a value as indented JSON, with a newline after it.
func PrintJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
