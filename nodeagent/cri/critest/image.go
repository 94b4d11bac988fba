// SPDX-License-Identifier: Apache-2.0

package critest

import (
	"context"
	"slices"

	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// AddImage adds an image with its tags.
func (r *Runtime) AddImage(id string, tags ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.images = append(r.images, &runtimev1.Image{Id: id, RepoTags: tags})
}

// ImageFsInfo implements CRI.
func (r *Runtime) ImageFsInfo(context.Context, *runtimev1.ImageFsInfoRequest) (*runtimev1.ImageFsInfoResponse, error) {
	return &runtimev1.ImageFsInfoResponse{}, nil
}

// ImageStatus implements CRI.
func (r *Runtime) ImageStatus(_ context.Context, q *runtimev1.ImageStatusRequest) (*runtimev1.ImageStatusResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := &runtimev1.ImageStatusResponse{}
	for _, i := range r.images {
		if slices.Contains(i.RepoTags, q.GetImage().GetImage()) || slices.Contains(i.RepoDigests, q.GetImage().GetImage()) {
			out.Image = i
		}
	}
	return out, nil
}

// PullImage implements CRI.
func (r *Runtime) PullImage(ctx context.Context, q *runtimev1.PullImageRequest) (*runtimev1.PullImageResponse, error) {
	name := q.GetImage().GetImage()
	r.recordCall("pull %s as %q", name, q.GetAuth().GetUsername())
	if r.OnPull != nil {
		if err := r.OnPull(ctx, q); err != nil {
			return nil, err
		}
	}
	r.AddImage("sha256:"+name, name)
	return &runtimev1.PullImageResponse{ImageRef: "sha256:" + name}, nil
}
