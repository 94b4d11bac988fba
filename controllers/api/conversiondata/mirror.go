// SPDX-License-Identifier: Apache-2.0

package conversiondata

import "k8s.io/apimachinery/pkg/api/equality"

// Mirror is an annotation with which v1alpha1 says what v1beta1 has a field for. It is a field or an annotation, not
// both: converted to v1beta1, the annotation goes. What the other version cannot say of it is kept beside it: Spellings
// in OlderKey, Originals in NewerKey.
type Mirror[T any] struct {
	// Key of the annotation.
	Key string
	// Parse says what a text means; false if it means nothing. Such a text is no field: it stays an annotation.
	Parse func(text string) (T, bool)
	// Format is the text of a value that is not zero. Parse may read something else from it, or nothing: then the
	// annotation cannot say the value.
	Format func(T) string
}

// Spellings are texts, by annotation, that say what the field says in other words than Format.
type Spellings map[string]string

// Originals are what v1beta1 objects have as annotations by the keys of mirrors.
type Originals map[string]Original

// Original is what the v1beta1 object has as an annotation besides its field.
type Original struct {
	Is Relation `json:"is"`
	// Text is left out for Both: the mirror shows it.
	Text string `json:"text,omitempty"`
}

// Relation is how an annotation of a v1beta1 object stands to the field.
type Relation string

const (
	// Only is an annotation without a field. v1alpha1 shows it as it is, and it becomes a field when it is changed there.
	Only Relation = "only"
	// Both says the same as the field, and follows it.
	Both Relation = "both"
	// Stale says something else than the field, and is not shown.
	Stale Relation = "stale"
)

// ToField takes the annotation off and says what it means; false if it is no field.
func (m Mirror[T]) ToField(annotations *map[string]string, kept Originals, spellings *Spellings) (T, bool) {
	var none T
	text, there := (*annotations)[m.Key]
	original := kept[m.Key]
	if !there || original == (Original{Is: Only, Text: text}) {
		return none, false
	}
	value, ok := m.Parse(text)
	if !ok {
		return none, false
	}
	switch {
	case original.Is == Both, original.Is == Stale && m.matchesValue(original.Text, value):
		return value, true // what was stale may have become right
	case original.Is == Stale:
		SetMetadata(annotations, m.Key, original.Text)
	default:
		RemoveMetadata(annotations, m.Key)
	}
	if isSemanticallyEqual(value, none) || text != m.Format(value) {
		SetMetadata((*map[string]string)(spellings), m.Key, text)
	}
	return value, true
}

// FromField writes the annotation. It says false if the annotation cannot say the value.
func (m Mirror[T]) FromField(value T, annotations *map[string]string, spellings Spellings, kept *Originals) bool {
	var none T
	text, said := spellings[m.Key]
	if said = said && m.matchesValue(text, value); !said && !isSemanticallyEqual(value, none) {
		text = m.Format(value)
		said = m.matchesValue(text, value)
	}
	old, there := (*annotations)[m.Key]
	original := Original{}
	switch {
	case there && said && m.matchesValue(old, value):
		original.Is, text = Both, old
	case there && said:
		original = Original{Is: Stale, Text: old}
	case there && m.isParsable(old):
		original = Original{Is: Only, Text: old}
	}
	if original.Is != "" {
		if *kept == nil {
			*kept = Originals{}
		}
		(*kept)[m.Key] = original
	}
	if said {
		SetMetadata(annotations, m.Key, text)
	}
	return said || isSemanticallyEqual(value, none)
}

func (m Mirror[T]) isParsable(text string) bool {
	_, ok := m.Parse(text)
	return ok
}

func (m Mirror[T]) matchesValue(text string, value T) bool {
	meant, ok := m.Parse(text)
	return ok && isSemanticallyEqual(meant, value)
}

func isSemanticallyEqual[T any](a, b T) bool { return equality.Semantic.DeepEqual(a, b) }
