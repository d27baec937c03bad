# SPDX-License-Identifier: BSD-3-Clause
"""Three nodes for Weir: sender, switch and receiver, with a link of 25 Gbit/s on either side.

As CoreScale's dumbbell: all senders on one node, the bottleneck on the next, all receivers on the
third. Instructions: When the nodes are ready, run tools/deploy/cloudlab/inventory MANIFEST on your
machine, and then: tools/weir run --live --hosts inventory.yaml tools/deploy/dumbbell.yaml
"""

import geni.portal as portal
import geni.rspec.pg as pg

IMAGE = "urn:publicid:IDN+emulab.net+image+emulab-ops//DEBIAN12-64-STD"
SETUP = "sudo /local/repository/tools/deploy/cloudlab/setup"
LINKS = (("sender", "switch"), ("switch", "receiver"))

context = portal.Context()
context.defineParameter("hardware", "Type of the nodes", portal.ParameterType.NODETYPE, "c6525-25g")
context.defineParameter(
    "rate", "Rate of each link in kbit/s", portal.ParameterType.BANDWIDTH, 25000000
)
parameters = context.bindParameters()
request = context.makeRequestRSpec()

nodes = {}
for name in ("sender", "switch", "receiver"):
    nodes[name] = request.RawPC(name)
    nodes[name].hardware_type = parameters.hardware
    nodes[name].disk_image = IMAGE
    nodes[name].addService(pg.Execute(shell="bash", command=SETUP))
for ends in LINKS:
    link = request.Link("-".join(ends))
    link.bandwidth = parameters.rate
    link.link_multiplexing = False  # one card each: the switch owns it
    for end in ends:
        interface = nodes[end].addInterface("to-" + ends[1 - ends.index(end)])
        link.addInterface(interface)

context.printRequestRSpec()
