// Package policy has the commands for people who write policies: check, test
// and eval. They need no cluster.
package policy

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/bundle/gate"
	"github.com/regatta-sh/regatta/engine/module"
)

// New makes the command with all that are below it.
func New(builtin fs.FS, opts ...Option) *cobra.Command {
	c := &commands{builtin: builtin, runner: gate.InProcess{}}
	for _, o := range opts {
		o(c)
	}
	cmd := &cobra.Command{Use: "policy", Short: "Check, test and evaluate policies"}
	cmd.AddCommand(c.check(), c.test(), c.eval())
	return cmd
}

// Option changes the commands.
type Option func(*commands)

// WithRunner sets who runs the steps of the gate.
func WithRunner(r gate.Runner) Option { return func(c *commands) { c.runner = r } }

type commands struct {
	builtin fs.FS
	runner  gate.Runner
}

// kind has the flags that say what a bundle is.
type kind struct {
	namespace string
	builtin   bool
}

func (k *kind) flags(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&k.namespace, "namespace", "n", "", "the bundle is a PolicyBundle of this namespace, and may only be stricter")
	cmd.Flags().BoolVar(&k.builtin, "builtin", false, "the bundle takes the place of the built-in policies")
	cmd.MarkFlagsMutuallyExclusive("namespace", "builtin")
}

func (k *kind) options() []bundle.Option {
	switch {
	case k.namespace != "":
		return []bundle.Option{bundle.AsTenant(k.namespace)}
	case k.builtin:
		return []bundle.Option{bundle.AsBuiltin()}
	}
	return nil
}

// load reads a bundle from a folder, an archive or a single file.
func load(path string, opts ...bundle.Option) (*bundle.Bundle, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("reading bundle: %w", err)
	}
	name := strings.TrimSuffix(filepath.Base(filepath.Clean(path)), ".tar.gz")
	switch {
	case info.IsDir():
		return bundle.FromFS(name, os.DirFS(path), opts...)
	case strings.HasSuffix(path, ".tar.gz"):
		f, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("reading bundle: %w", err)
		}
		defer f.Close()
		return bundle.FromArchive(name, f, nil, opts...)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading bundle: %w", err)
	}
	return bundle.FromFiles(name, map[string]string{filepath.Base(path): string(text)}, opts...)
}

// load reads a bundle and the built-in one that it would be active with, which
// may be itself.
func (c *commands) load(path string, k *kind) (b, builtin *bundle.Bundle, err error) {
	if b, err = load(path, k.options()...); err != nil {
		return nil, nil, at(path, err)
	}
	if k.builtin {
		return b, b, nil
	}
	builtin, err = bundle.FromFS("builtin", c.builtin, bundle.AsBuiltin())
	return b, builtin, err
}

// at puts the path a bundle was read from before the files of its problems, so
// that an editor finds them.
func at(path string, err error) error {
	ps := problemsOf(err)
	if ps == nil {
		return err
	}
	info, statErr := os.Stat(path)
	out := make(module.Problems, len(ps))
	for i, p := range ps {
		switch {
		case statErr == nil && !info.IsDir():
			p.File = path
		case p.File != filepath.Base(filepath.Clean(path)):
			p.File = filepath.Join(path, p.File)
		default:
			p.File = path // it is about the bundle as a whole
		}
		out[i] = p
	}
	return out
}
