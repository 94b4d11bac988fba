// SPDX-License-Identifier: Apache-2.0

package assets_test

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// failing is a registry that refuses the writes from a number on; none while that is 0.
type failing struct {
	http.Handler
	from, writes int
}

func (f *failing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		if f.writes++; f.from > 0 && f.writes >= f.from {
			http.Error(w, `{"errors":[{"code":"DENIED","message":"the quota is used up"}]}`, http.StatusForbidden)
			return
		}
	}
	f.Handler.ServeHTTP(w, r)
}

// Whatever write fails, a tag never names what is not there as a whole, a chart never comes before its image, and the same push then ends it.
func TestAPushThatFailsHalfwayIsGoneOnWith(t *testing.T) {
	_, release := commonRelease(t)
	quiet := func(string) {}
	for from := 1; ; from++ {
		f := &failing{Handler: registry.New(registry.WithReferrersSupport(true), registry.Logger(log.New(io.Discard, "", 0))), from: from}
		server := httptest.NewServer(f)
		host := strings.TrimPrefix(server.URL, "http://")
		// Writes at the same time would fail in another order each time.
		err := release.PushRelease(t.Context(), host, quiet, remote.WithJobs(1))
		if err != nil && !strings.Contains(err.Error(), "the quota is used up") {
			t.Fatalf("write %d: %v", from, err)
		}
		hasImage := checkTag(t, host+"/regatta-sh/regatta:0.2.0")
		if hasChart := checkTag(t, host+"/regatta-sh/charts/kruise:0.2.0"); hasChart && !hasImage {
			t.Errorf("write %d: the chart is there before its image", from)
		}
		failed := err
		f.from = 0
		if err := release.PushRelease(t.Context(), host, quiet); err != nil {
			t.Errorf("write %d: the push after it: %v", from, err)
		}
		if !checkTag(t, host+"/regatta-sh/regatta:0.2.0") || !checkTag(t, host+"/regatta-sh/charts/kruise:0.2.0") {
			t.Errorf("write %d: the push after it leaves something out", from)
		}
		server.Close()
		if failed == nil {
			if from < 10 {
				t.Errorf("there are %d writes", from)
			}
			return
		}
	}
}

// checkTag reports whether there is a tag, and holds that all that it names is there.
func checkTag(t *testing.T, of string) bool {
	t.Helper()
	tag, err := name.NewTag(of)
	if err != nil {
		t.Fatal(err)
	}
	there, err := remote.Get(tag)
	if err != nil {
		return false
	}
	var image v1.Image
	if there.MediaType.IsIndex() {
		var index v1.ImageIndex
		if index, err = there.ImageIndex(); err == nil {
			err = validate.Index(index)
		}
	} else if image, err = there.Image(); err == nil { // a chart, which has one layer that is no part of a file system
		err = readLayers(image)
	}
	if err != nil {
		t.Errorf("%s: %v", of, err)
	}
	return true
}

// readLayers reads all layers of an image.
func readLayers(image v1.Image) error {
	layers, err := image.Layers()
	if err != nil {
		return err
	}
	for _, layer := range layers {
		content, err := layer.Compressed()
		if err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, content); err != nil {
			return err
		}
	}
	return nil
}
