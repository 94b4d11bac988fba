// SPDX-License-Identifier: Apache-2.0

// Package bundlerevision stores policy bundles in ControllerRevisions and reads
// them again.
package bundlerevision

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// Content is the data of a ControllerRevision that stores a bundle.
type Content struct {
	// Archive is a bundle.tar.gz as it was fetched, including its signature.
	Archive []byte `json:"archive"`
	// Reference is where the archive was fetched from, for users.
	Reference string `json:"reference"`
}

// ArchiveDigest returns the digest of an archive.
func ArchiveDigest(archive []byte) string {
	sum := sha256.Sum256(archive)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Read reads the data of a ControllerRevision, whose archive must have the digest.
func Read(raw []byte, digest string) (Content, error) {
	c := Content{}
	if err := json.Unmarshal(raw, &c); err != nil {
		return Content{}, fmt.Errorf("was changed: %w", err)
	}
	if is := ArchiveDigest(c.Archive); is != digest {
		return Content{}, fmt.Errorf("was changed: its archive is %s, want %s", is, digest)
	}
	return c, nil
}
