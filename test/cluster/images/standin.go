// SPDX-License-Identifier: Apache-2.0

package images

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/regatta-sh/regatta/charts/release/layer"
)

// Scripts of the stand-ins. The first process of a container ignores signals
// that it has not asked for, so both ask for TERM: else every deletion of a pod
// would take its whole grace period.
const (
	serveScript = `#!/bin/sh
trap 'exit 0' TERM INT
httpd -f -p "${PORT:-80}" -h /www &
while :; do sleep 3600 & wait $!; done
`
	pauseScript = `#!/bin/sh
trap 'exit 0' TERM INT
while :; do sleep 86400 & wait $!; done
`
	bashScript = `#!/bin/sh
exec /bin/sh "$@"
`
)

// A StandIn makes images that replace any other image: BusyBox, answering HTTP
// requests on port 80 unless told to do something else.
type StandIn struct {
	layer v1.Layer
}

// FindBusyBox returns the path of a statically linked BusyBox.
func FindBusyBox() (string, error) {
	for _, candidate := range []string{"/bin/busybox", "/usr/bin/busybox", "/usr/local/bin/busybox"} {
		if _, err := os.Stat(candidate); err != nil {
			continue
		}
		if layer.RequireStatic(candidate) == nil {
			return candidate, nil
		}
	}
	return "", errors.New("no statically linked busybox on this machine; Debian has it in busybox-static")
}

// busyBox are the files of BusyBox, a link for each of its commands among them.
func busyBox(from string) ([]layer.File, error) {
	content, err := os.ReadFile(from)
	if err != nil {
		return nil, fmt.Errorf("reading busybox: %w", err)
	}
	listed, err := exec.Command(from, "--list").Output()
	if err != nil {
		return nil, fmt.Errorf("asking busybox what it can do: %w", err)
	}
	files := []layer.File{{Path: "bin/busybox", Mode: 0o755, Content: content}}
	for _, applet := range bytes.Fields(listed) {
		files = append(files, layer.File{Path: path.Join("bin", string(applet)), Link: "/bin/busybox"})
	}
	return files, nil
}

// NewStandIn reads BusyBox from the given path, which must run on this machine.
func NewStandIn(busybox string) (*StandIn, error) {
	commands, err := busyBox(busybox)
	if err != nil {
		return nil, err
	}
	files := append(skeleton(),
		layer.File{Path: "bin/serve", Mode: 0o755, Content: []byte(serveScript)},
		layer.File{Path: "bin/pause", Mode: 0o755, Content: []byte(pauseScript)},
		layer.File{Path: "bin/bash", Mode: 0o755, Content: []byte(bashScript)},
		layer.File{Path: "usr/bin/", Mode: 0o755},
		layer.File{Path: "usr/bin/env", Link: "/bin/busybox"},
		layer.File{Path: "www/index.html", Mode: 0o644, Content: []byte("ok\n")},
		layer.File{Path: "root/", Mode: 0o700},
		layer.File{Path: "var/run/", Mode: 0o755},
	)
	packed, err := layer.Pack(append(files, commands...))
	if err != nil {
		return nil, err
	}
	return &StandIn{layer: packed}, nil
}

// ImageID returns the stand-in for an image. Every tag has an image ID of its
// own, like releases of real images, except that the tags same-digest-a,
// same-digest-b and so on of one repository are one image.
func (s *StandIn) ImageID(repository, tag string) (v1.Image, error) {
	command := "/bin/serve"
	if path.Base(repository) == "pause" {
		// It shares the network of the pod's containers: it must not listen.
		command = "/bin/pause"
	}
	if strings.HasPrefix(tag, sameDigest) {
		tag = sameDigest
	}
	return newImage(s.layer, v1.Config{
		Cmd: []string{command}, WorkingDir: "/",
		Env:    []string{"PATH=/bin:/usr/bin"},
		Labels: map[string]string{"sh.regatta.stand-in": repository + ":" + tag},
	})
}

const sameDigest = "same-digest-"
