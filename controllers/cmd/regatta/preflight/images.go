// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"cmp"
	"regexp"
	"slices"
)

// ofOpenKruise matches the images that the chart refuses, whatever registry has them.
var ofOpenKruise = regexp.MustCompile(`(^|/)openkruise/kruise-(manager|daemon|helm-hook)$`)

// reportImages reports which images of the release are not for this chart: users set them for OpenKruise. A mirror that renames images may
// have those of either project.
func (l *look) reportImages(object string) {
	for _, value := range []string{"manager.image", "daemon.image", "helmHooks.image"} {
		repository, tag := l.release.textValue(value+".repository", ""), l.release.textValue(value+".tag", "")
		switch {
		case ofOpenKruise.MatchString(repository):
			l.addRow(Row{Effect: Blocks, Object: object, Field: value + ".repository", There: repository, Here: "refused: it is an image of OpenKruise",
				Do: "take it away, as the command below does, and name a mirror by --set image.registry"})
			l.release.unsetValue(value + ".repository")
			if tag != "" {
				l.release.unsetValue(value + ".tag")
			}
		case repository != "" && slices.Contains(l.release.unset, value+".repository"): // it has a tag or a digest in it
			if tag != "" {
				l.release.unsetValue(value + ".tag")
			}
		case repository != "":
			l.addRow(Row{Effect: Differs, Object: object, Field: value + ".repository", There: repository, Here: "kept, and has to be an image of Regatta",
				Do: "push that there, and set " + value + ".tag to its tag, which is " + cmp.Or(tag, "the version of the chart") + " now"})
		case tag != "":
			l.addRow(Row{Effect: Blocks, Object: object, Field: value + ".tag", There: tag, Here: "a version of OpenKruise, which Regatta has no image of",
				Do: "take it away, as the command below does"})
			l.release.unsetValue(value + ".tag")
		}
	}
}
