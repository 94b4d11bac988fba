// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"encoding/json"
	"net/http"
	"strings"
)

// AbsentHost is the registry whose images do not exist: a pod that names
// absent.invalid/web:v1 waits in ErrImagePull. No real registry has a name that
// ends so (RFC 2606).
const AbsentHost = "absent.invalid"

// absent says whether a request is for an image of AbsentHost. A node names the
// registry of the image as a parameter, since it asks this one for the images
// of all others; a client that was given this registry's address has it in front
// of the repository.
func absent(request *http.Request) bool {
	return request.URL.Query().Get("ns") == AbsentHost || strings.HasPrefix(request.URL.Path, "/v2/"+AbsentHost+"/")
}

// notFound answers as the distribution API says.
func notFound(response http.ResponseWriter) {
	response.Header().Set("Content-Type", "application/json")
	response.WriteHeader(http.StatusNotFound)
	_ = json.NewEncoder(response).Encode(map[string]any{"errors": []any{
		map[string]string{"code": "NAME_UNKNOWN", "message": "no repository of " + AbsentHost + " exists"},
	}}) // the client has gone if it fails
}
