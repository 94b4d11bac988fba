// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"context"
	"errors"
	"fmt"

	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/regatta-sh/regatta/nodeagent/keyring"
)

// Login has the credentials for a registry.
type Login = keyring.Login

// Sandbox describes to the runtime the pod that an image is pulled for.
type Sandbox struct{ Labels, Annotations map[string]string }

// ImageRuntime returns the runtime that serves images: the first that answers.
func (n *Node) ImageRuntime(ctx context.Context) (*Runtime, error) {
	all, err := n.ListRuntimes(ctx)
	if err != nil {
		return nil, err
	}
	if why := all[0].ImagesMissing; why != "" {
		return nil, errors.New(why)
	}
	return all[0], nil
}

// ImageID returns the identity of an image on the node; empty if the node does not have it.
func (r *Runtime) ImageID(ctx context.Context, reference string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	said, err := r.images.ImageStatus(ctx, &runtimev1.ImageStatusRequest{Image: &runtimev1.ImageSpec{Image: reference}})
	if err != nil {
		return "", fmt.Errorf("looking for image %s: %w", reference, err)
	}
	return said.GetImage().GetId(), nil
}

// PullImage pulls an image and returns its identity. It ends with the context.
func (r *Runtime) PullImage(ctx context.Context, reference string, as *Login, sandbox Sandbox) (string, error) {
	q := &runtimev1.PullImageRequest{
		Image:         &runtimev1.ImageSpec{Image: reference, Annotations: sandbox.Annotations},
		SandboxConfig: &runtimev1.PodSandboxConfig{Metadata: &runtimev1.PodSandboxMetadata{}, Labels: sandbox.Labels, Annotations: sandbox.Annotations},
	}
	if as != nil {
		q.Auth = &runtimev1.AuthConfig{
			Username: as.Username, Password: as.Password, Auth: as.Auth, IdentityToken: as.IdentityToken, RegistryToken: as.RegistryToken,
		}
	}
	said, err := r.images.PullImage(ctx, q)
	if err != nil {
		return "", fmt.Errorf("pulling image %s: %w", reference, err)
	}
	return said.GetImageRef(), nil
}
