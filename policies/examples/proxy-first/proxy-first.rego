# METADATA
# title: The proxy before all others
# description: |
#   Containers of the SidecarSet mesh-proxy come before those of all other SidecarSets. More
#   names go on in the order of the list.
package extend.injection.proxy_first

# METADATA
# title: What comes first
# description: Names of SidecarSets.
# labels:
#   id: proxy-first.order
settings := {"first": ["mesh-proxy"]}
