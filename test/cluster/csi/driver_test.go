// SPDX-License-Identifier: Apache-2.0

package csi

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

const mega = 1 << 20

// driver is one that answers at its sockets, with a client of each service.
type driver struct {
	t          *testing.T
	store      store
	target     string
	controller csi.ControllerClient
	node       csi.NodeClient
	register   registration.RegistrationClient
}

func run(t *testing.T) *driver {
	t.Helper()
	root, err := os.MkdirTemp("", "csi") //nolint:usetesting // that of a test is too long for the path of a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	dir, kubelet, logger := filepath.Join(root, "volumes"), filepath.Join(root, "k"), log.New(io.Discard, "", 0)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 2)
	socket := filepath.Join(root, "csi.sock")
	go func() { done <- ServeController(ctx, dir, socket, logger) }()
	go func() { done <- ServeNode(ctx, dir, "node-1", kubelet, logger) }()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-done, <-done); err != nil {
			t.Error(err)
		}
	})
	d := &driver{t: t, store: store{dir}, target: filepath.Join(root, "pod", "mount")}
	d.register = registration.NewRegistrationClient(connect(t, filepath.Join(kubelet, "plugins_registry", Name+"-reg.sock")))
	info, err := d.register.GetInfo(ctx, &registration.InfoRequest{}, grpc.WaitForReady(true))
	if err != nil || info.Type != registration.CSIPlugin || info.Name != Name {
		t.Fatalf("it registers as %v, %v", info, err)
	}
	d.controller, d.node = csi.NewControllerClient(connect(t, socket)), csi.NewNodeClient(connect(t, info.Endpoint))
	return d
}

func connect(t *testing.T, socket string) *grpc.ClientConn {
	t.Helper()
	connection, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	return connection
}

var mount = &csi.VolumeCapability{
	AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
	AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
}

func (d *driver) create(name string, size int64, parameters map[string]string) (*csi.Volume, error) {
	made, err := d.controller.CreateVolume(d.t.Context(), &csi.CreateVolumeRequest{
		Name: name, CapacityRange: &csi.CapacityRange{RequiredBytes: size}, Parameters: parameters, VolumeCapabilities: []*csi.VolumeCapability{mount},
	})
	return made.GetVolume(), err
}

func (d *driver) expand(id string, size int64) (*csi.ControllerExpandVolumeResponse, error) {
	return d.controller.ControllerExpandVolume(d.t.Context(), &csi.ControllerExpandVolumeRequest{VolumeId: id, CapacityRange: &csi.CapacityRange{RequiredBytes: size}})
}

func (d *driver) publish(id string) {
	d.t.Helper()
	if _, err := d.node.NodePublishVolume(d.t.Context(), &csi.NodePublishVolumeRequest{VolumeId: id, TargetPath: d.target, VolumeCapability: mount}); err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { _ = unix.Unmount(d.target, unix.MNT_DETACH) })
}

func (d *driver) unpublish(id string) {
	d.t.Helper()
	if _, err := d.node.NodeUnpublishVolume(d.t.Context(), &csi.NodeUnpublishVolumeRequest{VolumeId: id, TargetPath: d.target}); err != nil {
		d.t.Fatal(err)
	}
}

func (d *driver) expandNode(ctx context.Context, id string) error {
	_, err := d.node.NodeExpandVolume(ctx, &csi.NodeExpandVolumeRequest{VolumeId: id, VolumePath: d.target})
	return err
}

func (d *driver) fileSystem(id string) int64 {
	d.t.Helper()
	found, err := FileSystemSize(d.store.dir, id)
	if err != nil {
		d.t.Fatal(err)
	}
	return found
}

func TestVolumesAreMadeAndGrow(t *testing.T) {
	d := run(t)
	limited := map[string]string{LimitParameter: "4Mi"}
	for range 2 { // a call that is made again changes nothing
		if made, err := d.create("a", 2*mega, limited); err != nil || made.VolumeId != "a" || made.CapacityBytes != 2*mega {
			t.Fatalf("it made %v, %v", made, err)
		}
	}
	for range 2 {
		if grown, err := d.expand("a", 4*mega); err != nil || grown.CapacityBytes != 4*mega || !grown.NodeExpansionRequired {
			t.Fatalf("it grew to %v, %v", grown, err)
		}
	}
	if got := d.fileSystem("a"); got != 2*mega {
		t.Errorf("its file system has %d without a node", got)
	}
	for _, test := range []struct {
		name string
		call func() error
		want codes.Code
	}{
		{"a volume of another size", func() error { _, err := d.create("a", 8*mega, nil); return err }, codes.AlreadyExists},
		{"a volume of other parameters", func() error { _, err := d.create("a", 4*mega, nil); return err }, codes.AlreadyExists},
		{"a volume beyond the limit", func() error { _, err := d.create("b", 5*mega, limited); return err }, codes.OutOfRange},
		{"growth beyond the limit", func() error { _, err := d.expand("a", 5*mega); return err }, codes.OutOfRange},
		{"growth of nothing", func() error { _, err := d.expand("b", mega); return err }, codes.NotFound},
		{"a name that is a path", func() error { _, err := d.create("../b", mega, nil); return err }, codes.InvalidArgument},
		{"an unknown parameter", func() error { _, err := d.create("b", mega, map[string]string{"x": "y"}); return err }, codes.InvalidArgument},
		{"a limit that is no size", func() error { _, err := d.create("b", mega, map[string]string{LimitParameter: "much"}); return err }, codes.InvalidArgument},
		{"a way to grow that is none", func() error { _, err := d.create("b", mega, map[string]string{ExpansionParameter: "x"}); return err }, codes.InvalidArgument},
		{"a file system that is not mounted", func() error { return d.expandNode(t.Context(), "a") }, codes.NotFound},
	} {
		if err := test.call(); status.Code(err) != test.want {
			t.Errorf("%s: got %v, want %s", test.name, err, test.want)
		}
	}
	for range 2 {
		if _, err := d.controller.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: "a"}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Join(d.store.dir, "a")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory of a deleted volume stays: %v", err)
	}
}

func TestABlockDeviceIsRefused(t *testing.T) {
	block := &csi.VolumeCapability{AccessType: &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}}
	d := run(t)
	if _, err := d.create("a", mega, nil); err != nil {
		t.Fatal(err)
	}
	ask := func(one *csi.VolumeCapability) *csi.ValidateVolumeCapabilitiesResponse {
		got, err := d.controller.ValidateVolumeCapabilities(t.Context(), &csi.ValidateVolumeCapabilitiesRequest{VolumeId: "a", VolumeCapabilities: []*csi.VolumeCapability{one}})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := ask(mount); got.Confirmed == nil {
		t.Errorf("a mount: %v", got)
	}
	if got := ask(block); got.Confirmed != nil || !strings.Contains(got.Message, "no block device") {
		t.Errorf("a block device: %v", got)
	}
}

func TestFileSystemsGrow(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("it mounts, which needs root")
	}
	tests := []struct {
		name       string
		parameters map[string]string
		at         func(*testing.T, *driver) // what it takes
	}{
		{"while they are mounted", nil, func(t *testing.T, d *driver) {
			if err := d.expandNode(t.Context(), "a"); err != nil {
				t.Error(err)
			}
		}},
		{"after a delay", map[string]string{DelayParameter: "300ms"}, func(t *testing.T, d *driver) {
			short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			defer cancel()
			if err := d.expandNode(short, "a"); status.Code(err) != codes.DeadlineExceeded || d.fileSystem("a") != mega {
				t.Errorf("it did not wait: %v", err)
			}
			if err := d.expandNode(t.Context(), "a"); err != nil {
				t.Error(err)
			}
		}},
		{"at the next mount", map[string]string{ExpansionParameter: AtMount}, func(t *testing.T, d *driver) {
			if err := d.expandNode(t.Context(), "a"); status.Code(err) != codes.FailedPrecondition || d.fileSystem("a") != mega {
				t.Errorf("it grew while it was mounted: %v", err)
			}
			d.unpublish("a")
			d.publish("a")
			if err := d.expandNode(t.Context(), "a"); err != nil {
				t.Error(err)
			}
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := run(t)
			if _, err := d.create("a", mega, test.parameters); err != nil {
				t.Fatal(err)
			}
			d.publish("a")
			d.publish("a") // twice is once
			if err := os.WriteFile(filepath.Join(d.target, "file"), []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := d.expand("a", 3*mega); err != nil {
				t.Fatal(err)
			}
			test.at(t, d)
			if got := d.fileSystem("a"); got != 3*mega {
				t.Errorf("its file system has %d", got)
			}
			d.unpublish("a")
			d.unpublish("a")
			if _, err := os.Stat(d.target); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the directory it was mounted at stays: %v", err)
			}
			if _, err := os.Stat(filepath.Join(d.store.data("a"), "file")); err != nil {
				t.Errorf("what the pod wrote is gone: %v", err)
			}
		})
	}
}
