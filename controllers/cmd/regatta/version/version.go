// SPDX-License-Identifier: Apache-2.0

// Package version is the command that prints the version of this program, and which policies are built
// into it.
package version

import (
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/output"
	"github.com/regatta-sh/regatta/engine/bundle"
)

// released is the version of the release. The linker sets it when images are built, since Go records no version there.
var released string

// Version is what is printed.
type Version struct {
	// Regatta is the version of the module: a tag, or the commit it was built from; (devel) if the build
	// recorded none.
	Regatta string `json:"regatta"`
	// Policies is the revision of the built-in bundle, as records and explanations name it. If a manager
	// has another revision, this program may answer differently from the cluster.
	Policies string `json:"policies"`
	// OPA is the version of the engine's OPA, empty if the build did not record it.
	OPA      string `json:"opa,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// NewCommand makes the command. builtin has the policies of the program.
func NewCommand(builtin fs.FS) *cobra.Command {
	form := output.New(output.Text, output.JSON)
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Tell which program this is, and which policies are built in",
		Example: `  regatta version
  regatta version -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			v, err := ReadVersion(builtin)
			if err != nil {
				return err
			}
			return v.printVersion(cmd.OutOrStdout(), form.String())
		},
	}
	form.AddTo(cmd)
	return cmd
}

// ReadVersion returns the version of this program. builtin has its policies.
func ReadVersion(builtin fs.FS) (Version, error) {
	b, err := bundle.ReadBuiltin(builtin)
	if err != nil {
		return Version{}, err
	}
	info, _ := debug.ReadBuildInfo()
	return newVersion(b, info), nil
}

// newVersion makes a Version from the build information, which may be missing.
func newVersion(b *bundle.Bundle, info *debug.BuildInfo) Version {
	v := Version{Regatta: cmp.Or(released, "(devel)"), Policies: b.ID(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info == nil {
		return v
	}
	if info.Main.Version != "" && released == "" {
		v.Regatta = info.Main.Version
	}
	for _, d := range info.Deps {
		if d.Path == "github.com/open-policy-agent/opa" {
			v.OPA = d.Version
		}
	}
	return v
}

func (v Version) printVersion(w io.Writer, form string) error {
	if form == output.JSON {
		return output.PrintJSON(w, v)
	}
	_, err := fmt.Fprintf(w, "regatta   %s\npolicies  %s\nopa       %s\ngo        %s %s\n", v.Regatta, bundle.ShortID(v.Policies), v.OPA, v.Go, v.Platform)
	return err
}
