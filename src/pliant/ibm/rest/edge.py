"""IBM's API as an edge of the application."""

from typing import Final

from pliant.ibm.rest import credentials, routers
from pliant.ibm.rest.access import IBM_NEEDED, IBM_OPEN
from pliant.ibm.rest.problems import IbmForm
from pliant.server.edge import Edge

IBM: Final = Edge(
    open_routers=routers.OPEN,
    routers=routers.CLOSED,
    allowed=credentials.allowed,
    open_routes=IBM_OPEN,
    needed=IBM_NEEDED,
    form=IbmForm,
)
