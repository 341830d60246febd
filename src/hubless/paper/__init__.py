"""The paper, reproduced: its protocol, the harness that runs it, and its tables made from raw results."""
