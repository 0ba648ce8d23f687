from tests.support.studies.read_once import studies_read_once

__all__ = ["studies_read_once"]
