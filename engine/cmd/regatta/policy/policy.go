// Package policy has the commands for people who write policies, in the order
// in which they use them: new, fmt, test, lint, verify, build, sign, inspect,
// push, pull, replay and simulate. They need no cluster.
package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/bundle/gate"
	"github.com/regatta-sh/regatta/engine/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/engine/cmd/regatta/policy/shipped"
	"github.com/regatta-sh/regatta/engine/module"
)

// New makes the command with all that are below it.
func New(builtin fs.FS, opts ...Option) *cobra.Command {
	c := &commands{builtin: builtin, runner: gate.InProcess{}}
	for _, o := range opts {
		o(c)
	}
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "Write, test, verify, sign and ship policies",
		Long: `Policy has what people need who write policies. All of its commands end with

  0  all is fine
  1  policy says no: a test, the gate or a signature
  2  the command was mistyped
  3  it could not run`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(c.new(), c.check(), c.test(), c.eval(), c.lint(), c.fmt(), c.verify(), c.build(), c.sign(), c.inspect(), c.push(), c.pull(), c.replay(), c.simulate())
	cmd.AddCommand(shipped.Commands()...)
	return exit.Tree(cmd)
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

// load reads a bundle from a folder, an archive or a single file. Only archives
// can be verified; by is nil if nothing is.
func load(path string, by *bundle.Verification, opts ...bundle.Option) (*bundle.Bundle, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("reading bundle: %w", err)
	}
	name := strings.TrimSuffix(filepath.Base(filepath.Clean(path)), ".tar.gz")
	packed := !info.IsDir() && strings.HasSuffix(path, ".tar.gz")
	if by != nil && !packed {
		return nil, exit.Misused(fmt.Errorf("%s is no .tar.gz file, and only those are signed", path))
	}
	switch {
	case info.IsDir():
		return bundle.FromFS(name, os.DirFS(path), opts...)
	case packed:
		f, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("reading bundle: %w", err)
		}
		defer f.Close()
		return bundle.FromArchive(name, f, by, opts...)
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
	if b, err = load(path, nil, k.options()...); err != nil {
		return nil, nil, refusal(at(path, err))
	}
	if k.builtin {
		return b, b, nil
	}
	builtin, err = bundle.FromFS("builtin", c.builtin, bundle.AsBuiltin())
	return b, builtin, err
}

// loadAll reads platform bundles.
func loadAll(paths []string) (bundle.Set, error) {
	var set bundle.Set
	for _, path := range paths {
		b, err := load(path, nil)
		if err != nil {
			return nil, refusal(at(path, err))
		}
		set = append(set, b)
	}
	return set, nil
}

// refusal says of an error whether policy says no: what was read makes no
// bundle, or one that nobody trusted signed.
func refusal(err error) error {
	var signature bundle.SignatureError
	var large bundle.TooLargeError
	if problemsOf(err) != nil || errors.As(err, &signature) || errors.As(err, &large) {
		return exit.No(err)
	}
	return err
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
		case statErr == nil && !info.IsDir() && !strings.HasSuffix(path, ".tar.gz"):
			p.File = path
		case p.File != strings.TrimSuffix(filepath.Base(filepath.Clean(path)), ".tar.gz"):
			p.File = filepath.Join(path, p.File)
		default:
			p.File = path // it is about the bundle as a whole
		}
		out[i] = p
	}
	return out
}
