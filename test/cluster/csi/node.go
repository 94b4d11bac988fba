// SPDX-License-Identifier: Apache-2.0

package csi

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

type node struct {
	csi.UnimplementedNodeServer
	store store
	name  string
}

// NodeGetInfo implements csi.NodeServer.
func (n node) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: n.name}, nil
}

// NodeGetCapabilities implements csi.NodeServer.
func (node) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	return &csi.NodeGetCapabilitiesResponse{Capabilities: []*csi.NodeServiceCapability{{
		Type: &csi.NodeServiceCapability_Rpc{Rpc: &csi.NodeServiceCapability_RPC{Type: csi.NodeServiceCapability_RPC_EXPAND_VOLUME}},
	}}}, nil
}

// NodePublishVolume implements csi.NodeServer.
func (n node) NodePublishVolume(_ context.Context, request *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	id, target := request.GetVolumeId(), request.GetTargetPath()
	found, err := n.store.volume(id)
	if err != nil {
		return nil, err
	}
	if err := supported([]*csi.VolumeCapability{request.GetVolumeCapability()}); err != nil {
		return nil, err
	}
	if target == "" {
		return nil, status.Error(codes.InvalidArgument, "no path to mount at")
	}
	if there, err := mounted(target); err != nil || there {
		return &csi.NodePublishVolumeResponse{}, err
	}
	if found.Parameters.AtMount {
		if err := n.store.write(id, fileSystemFile, fileSystem{Size: found.Size}); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(target, 0o755); err != nil {
		return nil, fmt.Errorf("making the directory to mount volume %s at: %w", id, err)
	}
	if err := unix.Mount(n.store.data(id), target, "", unix.MS_BIND, ""); err != nil {
		return nil, fmt.Errorf("mounting volume %s: %w", id, err)
	}
	if !request.GetReadonly() {
		return &csi.NodePublishVolumeResponse{}, nil
	}
	if err := unix.Mount("", target, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		return nil, errors.Join(fmt.Errorf("mounting volume %s read-only: %w", id, err), unix.Unmount(target, 0))
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

// NodeUnpublishVolume implements csi.NodeServer.
func (n node) NodeUnpublishVolume(_ context.Context, request *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	target := request.GetTargetPath()
	if err := check(request.GetVolumeId()); err != nil {
		return nil, err
	}
	if target == "" {
		return nil, status.Error(codes.InvalidArgument, "no path to unmount")
	}
	there, err := mounted(target)
	if err != nil {
		return nil, err
	}
	if there {
		if err := unix.Unmount(target, 0); err != nil {
			return nil, fmt.Errorf("unmounting %s: %w", target, err)
		}
	}
	if err := os.Remove(target); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("removing the directory that was mounted at: %w", err)
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}

// NodeExpandVolume implements csi.NodeServer. It waits out the delay of the volume's
// class. Where file systems grow at mounts only, it has the code FailedPrecondition
// until the next one.
func (n node) NodeExpandVolume(ctx context.Context, request *csi.NodeExpandVolumeRequest) (*csi.NodeExpandVolumeResponse, error) {
	id := request.GetVolumeId()
	found, err := n.store.volume(id)
	if err != nil {
		return nil, err
	}
	if there, err := mounted(request.GetVolumePath()); err != nil {
		return nil, err
	} else if !there {
		return nil, status.Errorf(codes.NotFound, "volume %s is not mounted at %q", id, request.GetVolumePath())
	}
	has, err := n.store.fileSystem(id)
	if err != nil {
		return nil, err
	}
	if has.Size >= found.Size {
		return &csi.NodeExpandVolumeResponse{CapacityBytes: has.Size}, nil
	}
	if found.Parameters.AtMount {
		return nil, status.Errorf(codes.FailedPrecondition, "the file system of volume %s grows when it is mounted again", id)
	}
	if wait := time.Until(found.Grown.Add(found.Parameters.Delay)); wait > 0 {
		select {
		case <-ctx.Done():
			return nil, status.FromContextError(ctx.Err()).Err()
		case <-time.After(wait):
		}
	}
	if err := n.store.write(id, fileSystemFile, fileSystem{Size: found.Size}); err != nil {
		return nil, err
	}
	return &csi.NodeExpandVolumeResponse{CapacityBytes: found.Size}, nil
}

// mounted says whether something is mounted at a path.
func mounted(path string) (bool, error) {
	var info unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BASIC_STATS, &info)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("asking what is mounted at %q: %w", path, err)
	}
	return info.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0, nil
}
