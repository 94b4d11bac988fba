// SPDX-License-Identifier: Apache-2.0

// Package csi is a CSI driver for local clusters whose volumes grow as those of a
// storage system do: the controller service grows the volume, a node then grows its
// file system, and either can fail or take its time.
//
// A volume is a directory on this machine, which every node sees. Nothing enforces
// its size: what the driver records of it is what Kubernetes works with. Parameters
// of the storage class say how volumes grow; see Parameters.
package csi

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"net"
	"os"
	"path/filepath"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// Name is the name of the driver: the provisioner of its storage classes.
const Name = "csi.regatta.sh"

// version is that of the driver, and specVersion that of CSI, for the kubelet.
const (
	version     = "v1"
	specVersion = "1.13.0"
)

// ServeController answers at a socket for the sidecars beside the control plane,
// until ctx ends. Volumes are directories below dir.
func ServeController(ctx context.Context, dir, socket string, logger *log.Logger) error {
	return serve(ctx, socket, logger, func(server *grpc.Server) {
		csi.RegisterIdentityServer(server, identity{})
		csi.RegisterControllerServer(server, controller{store: store{dir}})
	})
}

// ServeNode mounts volumes for the kubelet of a node until ctx ends, and registers
// the driver with it. It has to run in the mount namespace of the kubelet, whose
// root directory is kubelet.
func ServeNode(ctx context.Context, dir, name, kubelet string, logger *log.Logger) error {
	endpoint := filepath.Join(kubelet, "plugins", Name, "csi.sock")
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		cancel(serve(ctx, endpoint, logger, func(server *grpc.Server) {
			csi.RegisterIdentityServer(server, identity{})
			csi.RegisterNodeServer(server, node{store: store{dir}, name: name})
		}))
	}()
	// The kubelet looks for sockets here, and calls the driver at the endpoint as soon
	// as it finds one. A call before the driver listens fails, and is made again.
	err := serve(ctx, filepath.Join(kubelet, "plugins_registry", Name+"-reg.sock"), logger, func(server *grpc.Server) {
		registration.RegisterRegistrationServer(server, registrar{endpoint: endpoint, log: logger})
	})
	if err != nil {
		return err
	}
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// serve answers at a socket until ctx ends.
func serve(ctx context.Context, socket string, logger *log.Logger, register func(*grpc.Server)) error {
	if err := os.MkdirAll(filepath.Dir(socket), 0o755); err != nil {
		return fmt.Errorf("making the directory of a socket: %w", err)
	}
	// A driver that was killed leaves its socket, at which nothing listens.
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing an old socket: %w", err)
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return fmt.Errorf("listening at a socket: %w", err)
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		response, err := handler(ctx, request)
		if err != nil {
			logger.Printf("%s %v: %v", info.FullMethod, request, err)
		}
		return response, err
	}))
	register(server)
	defer context.AfterFunc(ctx, server.Stop)()
	if err := server.Serve(listener); err != nil && ctx.Err() == nil {
		return fmt.Errorf("serving at %s: %w", socket, err)
	}
	return nil
}

type identity struct {
	csi.UnimplementedIdentityServer
}

// GetPluginInfo implements csi.IdentityServer.
func (identity) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: Name, VendorVersion: version}, nil
}

// GetPluginCapabilities implements csi.IdentityServer.
func (identity) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	return &csi.GetPluginCapabilitiesResponse{Capabilities: []*csi.PluginCapability{
		{Type: &csi.PluginCapability_Service_{Service: &csi.PluginCapability_Service{Type: csi.PluginCapability_Service_CONTROLLER_SERVICE}}},
		{Type: &csi.PluginCapability_VolumeExpansion_{VolumeExpansion: &csi.PluginCapability_VolumeExpansion{Type: csi.PluginCapability_VolumeExpansion_ONLINE}}},
	}}, nil
}

// Probe implements csi.IdentityServer.
func (identity) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{Ready: wrapperspb.Bool(true)}, nil
}

// registrar tells the kubelet where the driver answers.
type registrar struct {
	registration.UnimplementedRegistrationServer
	endpoint string
	log      *log.Logger
}

// GetInfo implements registration.RegistrationServer.
func (r registrar) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{Type: registration.CSIPlugin, Name: Name, Endpoint: r.endpoint, SupportedVersions: []string{specVersion}}, nil
}

// NotifyRegistrationStatus implements registration.RegistrationServer.
func (r registrar) NotifyRegistrationStatus(_ context.Context, status *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	if !status.PluginRegistered {
		r.log.Printf("the kubelet refuses the driver: %s", status.Error)
	}
	return &registration.RegistrationStatusResponse{}, nil
}
