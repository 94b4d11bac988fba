// SPDX-License-Identifier: Apache-2.0

package binaries

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"
)

// versionPattern finds the first version in what a program prints: they all
// print one, and no two print it alike.
const versionPattern = `v?([0-9]+)\.([0-9]+)(?:\.[0-9]+)?`

// majorMinor returns the first two numbers of the first version in text, or
// empty strings.
func majorMinor(text string) (major, minor string) {
	match := regexp.MustCompile(versionPattern).FindStringSubmatch(text)
	if match == nil {
		return "", ""
	}
	return match[1], match[2]
}

// fits reports whether a program that printed output may be used in place of the
// pinned version: here, programs of one minor version behave the same.
func fits(output, pinned string) bool {
	major, minor := majorMinor(output)
	wantMajor, wantMinor := majorMinor(pinned)
	return major != "" && major == wantMajor && minor == wantMinor
}

// installed looks for a fitting program that the machine already has.
func installed(ctx context.Context, program Program) (string, bool) {
	for _, dir := range searchPath() {
		path := filepath.Join(dir, program.Name)
		if info, err := os.Stat(path); err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
			continue
		}
		limited, cancel := context.WithTimeout(ctx, 5*time.Second)
		output, err := exec.CommandContext(limited, path, program.VersionArgs...).CombinedOutput()
		cancel()
		if err == nil && fits(string(output), program.Version) {
			return path, true
		}
	}
	return "", false
}

// searchPath puts KUBEBUILDER_ASSETS, where envtest keeps its control plane,
// before PATH.
func searchPath() []string {
	dirs := filepath.SplitList(os.Getenv("PATH"))
	if assets := os.Getenv("KUBEBUILDER_ASSETS"); assets != "" {
		dirs = append([]string{assets}, dirs...)
	}
	return dirs
}
