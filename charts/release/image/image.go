// SPDX-License-Identifier: Apache-2.0

// Package image builds the image of Regatta without a container engine: one image with the manager, the node agent and the command
// line, for one platform or more. It has no shell, and does not run as root unless the pod asks for root. The same commit and the same versions
// of Go and of the modules make the same image, to the last byte.
package image

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/regatta-sh/regatta/charts/release/layer"
)

// user is who the programs run as, with a group of the same number. The DaemonSet of the chart asks for root, which the runtime's socket needs.
const user = "65532:65532"

// Origin is what an image was built from.
type Origin struct {
	// Version is the version of the release, such as v0.2.0.
	Version string
	// Revision is the commit. Modified is true if the sources differ from it.
	Revision string
	Modified bool
	// Created is the time of the commit: the time of the build would make each build another image.
	Created time.Time
}

// ociLabels are those that image-spec has names for.
func (o Origin) ociLabels() map[string]string {
	revision := o.Revision
	if o.Modified {
		revision += dirty
	}
	return map[string]string{
		"org.opencontainers.image.title":         "Regatta",
		"org.opencontainers.image.description":   "Workload automation for Kubernetes with the API of OpenKruise, every decision of it a Rego policy",
		"org.opencontainers.image.version":       o.Version,
		"org.opencontainers.image.revision":      revision,
		"org.opencontainers.image.created":       o.Created.UTC().Format(time.RFC3339),
		"org.opencontainers.image.source":        Sources,
		"org.opencontainers.image.documentation": Sources + "/blob/main/README.md",
		"org.opencontainers.image.licenses":      "Apache-2.0",
		"org.opencontainers.image.vendor":        "Regatta",
	}
}

// Sources is where the sources are.
const Sources = "https://github.com/regatta-sh/regatta"

// Built is an image for some platforms.
type Built struct {
	Index     v1.ImageIndex
	Platforms []Platform
	Origin    Origin
}

// Platform is the image for one platform.
type Platform struct {
	v1.Platform
	Image v1.Image
	// SBOM is what its programs were built of, as a document of SPDX.
	SBOM []byte
}

// Build compiles the programs of the module in a folder, and makes an image of them for each platform. Build calls report for each step.
func Build(ctx context.Context, source string, programs []Program, platforms []v1.Platform, origin Origin, report func(string)) (*Built, error) {
	return BuildWith(ctx, CompilePrograms, source, programs, platforms, origin, report)
}

// BuildWith is Build with a compiler of the caller.
func BuildWith(ctx context.Context, compile Compiler, source string, programs []Program, platforms []v1.Platform, origin Origin, report func(string)) (*Built, error) {
	base, err := packBase(ctx)
	if err != nil {
		return nil, err
	}
	built := &Built{Origin: origin, Index: mutate.IndexMediaType(empty.Index, types.OCIImageIndex)}
	for _, platform := range platforms {
		report(fmt.Sprintf("Compiling for %s: minutes where nothing was compiled for it before", platform.String()))
		one, err := buildPlatform(ctx, compile, source, programs, platform, origin, base)
		if err != nil {
			return nil, err
		}
		built.Platforms = append(built.Platforms, *one)
		built.Index = mutate.AppendManifests(built.Index, mutate.IndexAddendum{Add: one.Image, Descriptor: v1.Descriptor{Platform: &platform}})
	}
	annotated, ok := mutate.Annotations(built.Index, origin.ociLabels()).(v1.ImageIndex)
	if !ok {
		return nil, errors.New("annotating the index made something else of it")
	}
	built.Index = annotated
	return built, nil
}

func buildPlatform(ctx context.Context, compile Compiler, source string, programs []Program, platform v1.Platform, origin Origin, base v1.Layer) (one *Platform, err error) {
	folder, err := os.MkdirTemp("", "regatta-image-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for the programs: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	paths, err := compile(ctx, source, programs, platform, origin.Version, folder)
	if err != nil {
		return nil, err
	}
	image, err := assembleImage(paths, platform, origin, base)
	if err != nil {
		return nil, err
	}
	document, err := DescribePrograms(paths, origin)
	if err != nil {
		return nil, err
	}
	return &Platform{Platform: platform, Image: image, SBOM: document}, nil
}

// FromPrograms makes the image of programs that were compiled for a platform.
func FromPrograms(ctx context.Context, programs []string, platform v1.Platform, origin Origin) (v1.Image, error) {
	base, err := packBase(ctx)
	if err != nil {
		return nil, err
	}
	return assembleImage(programs, platform, origin, base)
}

func assembleImage(programs []string, platform v1.Platform, origin Origin, base v1.Layer) (v1.Image, error) {
	if len(programs) == 0 {
		return nil, errors.New("an image needs at least one program")
	}
	files := make([]layer.File, len(programs))
	for i, program := range programs {
		if err := layer.RequireStatic(program); err != nil {
			return nil, err
		}
		content, err := os.ReadFile(program)
		if err != nil {
			return nil, fmt.Errorf("reading the program: %w", err)
		}
		files[i] = layer.File{Path: filepath.Base(program), Mode: 0o755, Content: content}
	}
	packed, err := layer.Pack(files)
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	created := v1.Time{Time: origin.Created.UTC()}
	for _, one := range []struct {
		layer v1.Layer
		by    string
	}{{base, "users, root certificates and time zones"}, {packed, "the programs"}} {
		if image, err = mutate.Append(image, mutate.Addendum{Layer: one.layer, MediaType: types.OCILayer, History: v1.History{Created: created, CreatedBy: "regatta release image: " + one.by}}); err != nil {
			return nil, fmt.Errorf("adding a layer with %s: %w", one.by, err)
		}
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = platform.OS, platform.Architecture, created
	config.Config = v1.Config{
		Entrypoint: []string{path.Join("/", filepath.Base(programs[0]))}, User: user, WorkingDir: "/", Env: []string{"PATH=/"}, Labels: origin.ociLabels(),
	}
	if image, err = mutate.ConfigFile(image, config); err != nil {
		return nil, fmt.Errorf("setting the configuration: %w", err)
	}
	return image, nil
}
