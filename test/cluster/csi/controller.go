// SPDX-License-Identifier: Apache-2.0

package csi

import (
	"context"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// defaultSize is the size in bytes of a volume for which no size is asked.
const defaultSize = 1 << 20

type controller struct {
	csi.UnimplementedControllerServer
	store store
}

// ControllerGetCapabilities implements csi.ControllerServer.
func (controller) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	out := &csi.ControllerGetCapabilitiesResponse{}
	for _, one := range []csi.ControllerServiceCapability_RPC_Type{
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME, csi.ControllerServiceCapability_RPC_EXPAND_VOLUME,
	} {
		out.Capabilities = append(out.Capabilities, &csi.ControllerServiceCapability{
			Type: &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{Type: one}},
		})
	}
	return out, nil
}

// CreateVolume implements csi.ControllerServer. The ID of a volume is its name.
func (c controller) CreateVolume(_ context.Context, request *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	id, wanted := request.GetName(), request.GetCapacityRange()
	if err := check(id); err != nil {
		return nil, err
	}
	if err := supported(request.GetVolumeCapabilities()); err != nil {
		return nil, err
	}
	if request.GetVolumeContentSource() != nil {
		return nil, status.Error(codes.InvalidArgument, "volumes are made empty")
	}
	parameters, err := parse(request.GetParameters())
	if err != nil {
		return nil, err
	}
	found, err := c.store.volume(id)
	switch {
	case status.Code(err) == codes.NotFound:
		found = volume{Size: size(wanted), Parameters: parameters}
		if err := fits(found.Size, wanted); err != nil {
			return nil, err
		}
		if err := parameters.allow(found.Size); err != nil {
			return nil, err
		}
		if err := c.store.create(id, found); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, err
	case fits(found.Size, wanted) != nil || found.Parameters != parameters:
		return nil, status.Errorf(codes.AlreadyExists, "volume %s is there, with %s and other parameters or another size", id, bytes(found.Size))
	}
	return &csi.CreateVolumeResponse{Volume: &csi.Volume{VolumeId: id, CapacityBytes: found.Size}}, nil
}

// DeleteVolume implements csi.ControllerServer.
func (c controller) DeleteVolume(_ context.Context, request *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	if err := c.store.remove(request.GetVolumeId()); err != nil {
		return nil, err
	}
	return &csi.DeleteVolumeResponse{}, nil
}

// ValidateVolumeCapabilities implements csi.ControllerServer.
func (c controller) ValidateVolumeCapabilities(_ context.Context, request *csi.ValidateVolumeCapabilitiesRequest) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	if _, err := c.store.volume(request.GetVolumeId()); err != nil {
		return nil, err
	}
	if len(request.GetVolumeCapabilities()) == 0 {
		return nil, supported(nil)
	}
	if err := supported(request.GetVolumeCapabilities()); err != nil {
		return &csi.ValidateVolumeCapabilitiesResponse{Message: status.Convert(err).Message()}, nil
	}
	return &csi.ValidateVolumeCapabilitiesResponse{Confirmed: &csi.ValidateVolumeCapabilitiesResponse_Confirmed{
		VolumeContext: request.GetVolumeContext(), VolumeCapabilities: request.GetVolumeCapabilities(), Parameters: request.GetParameters(),
	}}, nil
}

// ControllerExpandVolume implements csi.ControllerServer. The file system grows
// later, on a node.
func (c controller) ControllerExpandVolume(_ context.Context, request *csi.ControllerExpandVolumeRequest) (*csi.ControllerExpandVolumeResponse, error) {
	id, wanted := request.GetVolumeId(), request.GetCapacityRange()
	found, err := c.store.volume(id)
	if err != nil {
		return nil, err
	}
	if wanted == nil {
		return nil, status.Error(codes.InvalidArgument, "no size is asked for")
	}
	if found.Size < wanted.GetRequiredBytes() {
		found.Size, found.Grown = wanted.GetRequiredBytes(), time.Now()
		if err := fits(found.Size, wanted); err != nil {
			return nil, err
		}
		if err := found.Parameters.allow(found.Size); err != nil {
			return nil, err
		}
		if err := c.store.write(id, volumeFile, found); err != nil {
			return nil, err
		}
	}
	return &csi.ControllerExpandVolumeResponse{CapacityBytes: found.Size, NodeExpansionRequired: true}, nil
}

// size is the size in bytes of a new volume.
func size(wanted *csi.CapacityRange) int64 {
	if least := wanted.GetRequiredBytes(); least > 0 {
		return least
	}
	if most := wanted.GetLimitBytes(); most > 0 {
		return min(most, defaultSize)
	}
	return defaultSize
}

// fits refuses a size in bytes that is not in the range, with the code OutOfRange.
func fits(size int64, wanted *csi.CapacityRange) error {
	most := wanted.GetLimitBytes()
	if size < wanted.GetRequiredBytes() || most > 0 && size > most {
		return status.Errorf(codes.OutOfRange, "%s is not between the %s and the %s that are asked for", bytes(size), bytes(wanted.GetRequiredBytes()), bytes(most))
	}
	return nil
}

// supported refuses what a directory cannot do, with the code InvalidArgument.
func supported(wanted []*csi.VolumeCapability) error {
	if len(wanted) == 0 {
		return status.Error(codes.InvalidArgument, "no capability is asked for")
	}
	for _, one := range wanted {
		if one.GetMount() == nil {
			return status.Error(codes.InvalidArgument, "a volume can be mounted, and is no block device")
		}
	}
	return nil
}
