// SPDX-License-Identifier: Apache-2.0

// Package chart has what Helm checks values of the chart by, for commands that say ahead
// what it would refuse. Helm packs the chart without it.
package chart

import "embed"

// Schema is the JSON schema of the chart's values.
//
//go:embed values.schema.json
var Schema string

// Values are the defaults that values of users are merged into.
//
//go:embed values.yaml
var Values []byte

// CRDs are those of the chart, a file each.
//
//go:embed files/crds/*.yaml
var CRDs embed.FS

// ManagerFlags are the names of the flags of the manager, a line each.
//
//go:embed files/manager-flags.txt
var ManagerFlags string

// ManagerValues are the flags of the manager that values of the chart are for, and the values, as YAML. A flag that is "fixed" is one that the
// chart itself depends on.
//
//go:embed files/manager-values.yaml
var ManagerValues []byte
