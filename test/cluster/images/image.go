// SPDX-License-Identifier: Apache-2.0

package images

import (
	"fmt"
	"runtime"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"github.com/regatta-sh/regatta/charts/release/layer"
)

// skeleton is what programs expect of any root file system: somewhere to write,
// and names for the users that charts run them as.
func skeleton() []layer.File {
	return []layer.File{
		{Path: "tmp/", Mode: 0o1777},
		{Path: "etc/", Mode: 0o755},
		{Path: "etc/passwd", Mode: 0o644, Content: []byte("root:x:0:0:root:/:/bin/sh\nnonroot:x:65532:65532:nonroot:/tmp:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n")},
		{Path: "etc/group", Mode: 0o644, Content: []byte("root:x:0:\nnonroot:x:65532:\nnogroup:x:65534:\n")},
	}
}

// newImage makes an image of one layer that runs config on this machine.
func newImage(layer v1.Layer, config v1.Config) (v1.Image, error) {
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, fmt.Errorf("adding the layer: %w", err)
	}
	current, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	current = current.DeepCopy()
	current.Architecture, current.OS = runtime.GOARCH, "linux"
	current.Config = config
	image, err = mutate.ConfigFile(image, current)
	if err != nil {
		return nil, fmt.Errorf("setting the configuration: %w", err)
	}
	return image, nil
}
