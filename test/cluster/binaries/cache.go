// SPDX-License-Identifier: Apache-2.0

package binaries

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// CacheDir is where built programs are kept: ${XDG_CACHE_HOME:-~/.cache}/regatta.
func CacheDir() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding the cache directory: %w", err)
	}
	return filepath.Join(base, "regatta"), nil
}

// cachePath is where a program of exactly this version and these flags lies.
// The flags are part of the key, so that changing one is not missed.
func (p Program) cachePath(cache string) string {
	sum := sha256.Sum256([]byte(p.Package + "\x00" + p.linkerFlags() + "\x00" + runtime.Version()))
	key := strings.Join([]string{p.Name, p.Version, runtime.GOOS, runtime.GOARCH, hex.EncodeToString(sum[:4])}, "-")
	return filepath.Join(cache, "programs", key, p.Name)
}

// Link makes one directory with a link to each program, fit for PATH. Its name
// follows what it links to, so that two checkouts with other pins do not
// overwrite each other's.
func Link(cache string, paths map[string]string) (string, error) {
	hash := sha256.New()
	for _, program := range Programs() {
		fmt.Fprintln(hash, program.Name, paths[program.Name])
	}
	dir := filepath.Join(cache, "bin", hex.EncodeToString(hash.Sum(nil)[:4]))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("making the program directory: %w", err)
	}
	for name, path := range paths {
		link := filepath.Join(dir, name)
		if target, err := os.Readlink(link); err == nil && target == path {
			continue
		}
		// Rename replaces a link at once; remove and link would leave a gap
		// in which a concurrent user finds nothing.
		temporary := fmt.Sprintf("%s.%d", link, os.Getpid())
		if err := os.Symlink(path, temporary); err != nil {
			return "", fmt.Errorf("linking %s: %w", name, err)
		}
		if err := os.Rename(temporary, link); err != nil {
			return "", fmt.Errorf("linking %s: %w", name, err)
		}
	}
	return dir, nil
}
