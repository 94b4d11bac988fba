return listActions(obj, nil, {promote = whyNotPromoteBundle})
