return listActions(obj, countPods(obj, describeStrategy(obj)), {
  approve = whyNotApprove,
  pause = whyNotPause,
  promote = whyNotPromote,
  resume = whyNotResume,
})
