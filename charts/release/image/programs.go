// SPDX-License-Identifier: Apache-2.0

package image

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// ReleasePrograms are the programs of the image and the packages that they are built from. The first is what the image runs by default; the
// DaemonSet of the chart runs the second.
func ReleasePrograms() []Program {
	return []Program{
		{Name: "kruise-manager", Package: "./controllers/cmd/manager"},
		{Name: "kruise-daemon", Package: "./nodeagent/cmd/daemon"},
		CommandLine(),
	}
}

// CommandLine is the program that users run.
func CommandLine() Program { return Program{Name: "regatta", Package: "./controllers/cmd/regatta"} }

// Program is a program of the image.
type Program struct{ Name, Package string }

// versionName is the variable that has the version that a program prints.
const versionName = "github.com/regatta-sh/regatta/controllers/cmd/regatta/version.released"

// Tags leave out gRPC's pages of traces, whose templates look methods up by name: the linker then keeps all methods of all types, a
// quarter of a program.
const Tags = "grpcnotrace"

// Compiler builds programs as CompilePrograms does.
type Compiler func(ctx context.Context, source string, programs []Program, platform v1.Platform, version, into string) ([]string, error)

// CompilePrograms builds programs of the module in a folder for a platform into another folder, and returns their paths. The paths of this
// machine are left out of the programs, and what Go asks Git, which is true of a clone with one file more: so another machine builds
// the same ones from the same commit.
func CompilePrograms(ctx context.Context, source string, programs []Program, platform v1.Platform, version, into string) ([]string, error) {
	paths := make([]string, len(programs))
	for i, p := range programs {
		paths[i] = filepath.Join(into, p.Name)
		command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-tags", Tags, "-ldflags", "-s -w -buildid= -X "+versionName+"="+version, "-o", paths[i], p.Package)
		command.Dir = source
		// An empty GOFLAGS would be that of the file that go env writes.
		command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+platform.OS, "GOARCH="+platform.Architecture, "GOFLAGS=-buildvcs=false", "GOAMD64=v1", "GOARM64=v8.0", "GOARM=7", "GO386=sse2",
			"GOWORK=off", "GOFIPS140=off", "GOEXPERIMENT=")
		if output, err := command.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("building %s for %s: %w\n%s", p.Package, platform.String(), err, bytes.TrimSpace(output))
		}
	}
	return paths, nil
}

// ParsePlatforms reads platforms such as linux/amd64,linux/arm64. Only Linux runs the programs, and of the processors those that Go
// names by one word.
func ParsePlatforms(text string) ([]v1.Platform, error) {
	var out []v1.Platform
	seen := map[string]bool{}
	for one := range strings.SplitSeq(text, ",") {
		one = strings.TrimSpace(one)
		p, err := v1.ParsePlatform(one)
		switch {
		case err != nil:
			return nil, fmt.Errorf("platform %q: %w", one, err)
		case p.OS != "linux" || p.Architecture == "" || p.Variant != "" || p.OSVersion != "":
			return nil, fmt.Errorf("platform %q: want linux and a processor, such as linux/amd64 or linux/arm64", one)
		case seen[one]:
			return nil, fmt.Errorf("platform %q: it is there twice", one)
		}
		seen[one] = true
		out = append(out, *p)
	}
	return out, nil
}
