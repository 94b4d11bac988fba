package decision

// Workload is what every rollout point is told of the workload itself. It
// changes only when a person or a tool changes the object, so that answers may
// be remembered for as long as it stays equal.
type Workload struct {
	Kind        string            `json:"kind"`
	Namespace   string            `json:"namespace"`
	Name        string            `json:"name"`
	UID         string            `json:"uid"`
	Replicas    int               `json:"replicas"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// Strategy is the update strategy with every percentage resolved to a number
// of pods (decisions.md A-11; rounding is never a policy's business).
type Strategy struct {
	// Type is RollingUpdate or OnDelete.
	Type string `json:"type"`
	// Policy is ReCreate, InPlaceIfPossible or InPlaceOnly.
	Policy string `json:"policy"`
	// Partition is the number of pods kept at the current revision.
	Partition int `json:"partition"`
	// MaxUnavailable and MaxSurge are pods.
	MaxUnavailable int  `json:"maxUnavailable"`
	MaxSurge       int  `json:"maxSurge"`
	Paused         bool `json:"paused"`
	// ScaleMaxUnavailable bounds creation; MaxInt32 when unset.
	ScaleMaxUnavailable int `json:"scaleMaxUnavailable"`
	// Weights has the weight of each weightPriority term, in order.
	Weights []int `json:"weights,omitempty"`
	// OrderKeys has the key of each orderPriority term, in order.
	OrderKeys []string `json:"orderKeys,omitempty"`
	// Scatter has the scatter terms, in order.
	Scatter []ScatterTerm `json:"scatter,omitempty"`
}

// ScatterTerm is a label whose pods are spread over the whole rollout.
type ScatterTerm struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// Revisions names the two template revisions a rollout goes between.
type Revisions struct {
	Current string `json:"current"`
	Update  string `json:"update"`
}

// Counts are pods, by what they are. Pods that are terminating or finished are
// not counted at all.
type Counts struct {
	Total           int `json:"total"`
	Ready           int `json:"ready"`
	Available       int `json:"available"`
	Updated         int `json:"updated"`
	UpdatedReady    int `json:"updatedReady"`
	UpdatedAvail    int `json:"updatedAvailable"`
	Unavailable     int `json:"unavailable"`
	PreparingDelete int `json:"preparingDelete"`
	SpecifiedDelete int `json:"specifiedDelete"`
	Terminating     int `json:"terminating"`
}

// Group counts the pods of one group, such as one zone.
type Group struct {
	Total       int `json:"total"`
	Updated     int `json:"updated"`
	Unavailable int `json:"unavailable"`
}
