"""The contract of a store as tests, which packages that add stores run on theirs: `store_contract`."""

import pytest

# before it is imported: so that a failure shows the values that were compared
pytest.register_assert_rewrite(f"{__name__}.store_contract")
